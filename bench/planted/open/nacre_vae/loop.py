import torch


def epochs(data, size, steps, seed=1):
    """Shuffled batches of a tensor that is in memory, numbered from one, until `steps` are done."""
    generator = torch.Generator().manual_seed(seed)
    done = 0
    while True:
        for rows in torch.randperm(len(data), generator=generator).split(size):
            if len(rows) < size:
                continue
            done += 1
            yield done, data[rows]
            if done == steps:
                return
