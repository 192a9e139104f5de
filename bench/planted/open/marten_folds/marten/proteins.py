import torch


def chains(count, length, residues, seed):
    """Sequences that repeat short motifs with mutations."""
    g = torch.Generator().manual_seed(seed)
    motifs = torch.randint(0, residues, (40, 8), generator=g)
    picks = torch.randint(0, 40, (count, length // 8 + 1), generator=g)
    whole = motifs[picks].flatten(1)[:, : length + 1]
    noise = torch.randint(0, residues, whole.shape, generator=g)
    return torch.where(torch.rand(whole.shape, generator=g) < 0.1, noise, whole)
