import torch


def draw(n, classes, seed, size=32):
    """Soft blobs and bars, one arrangement per class, with noise and jitter."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    ax = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(ax, ax, indexing="ij")
    ang = y.float() * torch.pi / classes + 0.1 * torch.randn(n, generator=g)
    off = 0.3 * torch.randn(n, 2, generator=g)
    u = (xx - off[:, :1, None]) * ang.cos()[:, None, None] + (yy - off[:, 1:, None]) * ang.sin()[:, None, None]
    img = torch.stack([torch.exp(-(u**2) * 20), torch.sin(6 * u), torch.exp(-((u - 0.4) ** 2) * 30)], 1)
    return img + 0.5 * torch.randn(img.shape, generator=g), y
