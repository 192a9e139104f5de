import torch


def visits(rank, batch, codes, length, seed):
    """Hospital visits as lists of diagnosis codes; the label depends on a few of them."""
    g = torch.Generator().manual_seed(seed + 1000 * rank)
    while True:
        x = (codes * torch.rand(batch, length, generator=g) ** 2).long()
        yield x, ((x % 17 == 3).sum(1) > length // 17).long()
