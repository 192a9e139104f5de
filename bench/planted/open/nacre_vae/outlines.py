import torch


def make_outlines(n=4096, points=128, seed=0):
    """Logarithmic spirals with ribs: the radius at each angle."""
    g = torch.Generator().manual_seed(seed)
    angle = torch.linspace(0, 6.2832, points)
    growth = torch.rand(n, 1, generator=g) * 0.15
    ribs = torch.randint(3, 11, (n, 1), generator=g)
    depth = torch.rand(n, 1, generator=g) * 0.2
    radius = torch.exp(growth * angle) * (1 + depth * torch.sin(ribs * angle))
    radius = radius + 0.02 * torch.randn(n, points, generator=g)
    return (radius - radius.mean()) / radius.std()
