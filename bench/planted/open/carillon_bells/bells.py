import torch


def strike(count, frames, bands, towers, generator):
    """Decaying partials of carillon bells, the tower is to be told."""
    partials = torch.rand(towers, bands, generator=generator)
    decay = 1 + 4 * torch.rand(towers, bands, generator=generator)
    tower = torch.randint(0, towers, (count,), generator=generator)
    time = torch.linspace(0, 1, frames)[None, :, None]
    loudness = 0.3 + 0.7 * torch.rand(count, 1, 1, generator=generator)
    ring = loudness * partials[tower][:, None] * torch.exp(-decay[tower][:, None] * time)
    wind = 0.5 * torch.rand(count, 1, 1, generator=generator)
    return ring + wind * torch.randn(count, frames, bands, generator=generator), tower
