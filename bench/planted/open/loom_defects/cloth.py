import torch


def cloth(n, size=24, seed=0):
    """Woven cloth with, in half of the pictures, a missing thread or a stain."""
    g = torch.Generator().manual_seed(seed)
    base = torch.arange(size)
    weave = ((base[:, None] + base[None]) % 4 < 2).float()
    x = weave.repeat(n, 1, 1) + 0.25 * torch.randn(n, size, size, generator=g)
    y = torch.randint(0, 3, (n,), generator=g)
    spot = torch.randint(2, size - 6, (n, 2), generator=g)
    for i in range(n):
        r, c = spot[i].tolist()
        if y[i] == 1:
            x[i, r, :] = 0.5
        elif y[i] == 2:
            x[i, r : r + 4, c : c + 4] *= 0.3
    return x.unsqueeze(1), y
