import torch
from torch.utils.data import TensorDataset

NOTES = 24


def chants(count: int, length: int, seed: int) -> TensorDataset:
    """Plainchant as neumes: a mode's reciting tone, with steps up and down around it."""
    g = torch.Generator().manual_seed(seed)
    tone = torch.randint(6, 18, (count, 1), generator=g)
    jump = (
        torch.multinomial(torch.tensor([0.1, 0.25, 0.3, 0.25, 0.1]), count * length, replacement=True, generator=g).view(count, length) - 2
    )
    walk = torch.zeros(count, length, dtype=torch.long)
    for t in range(1, length):
        pull = (walk[:, t - 1] > 3).long() - (walk[:, t - 1] < -3).long()
        walk[:, t] = walk[:, t - 1] + jump[:, t] - pull
    return TensorDataset((tone + walk).clamp(0, NOTES - 1))
