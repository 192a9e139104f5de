import torch


def near_infrared(count, features, kinds, generator):
    """Smooth spectra of fruit, a mixture of two peaks per kind with scatter."""
    wave = torch.linspace(0, 1, features)
    place = torch.rand(kinds, 2, 1, generator=generator)
    height = 0.5 + torch.rand(kinds, 2, 1, generator=generator)
    clean = (height * torch.exp(-((wave - place) ** 2) / 0.01)).sum(1)
    kind = torch.randint(0, kinds, (count,), generator=generator)
    scatter = 1 + 0.2 * torch.randn(count, 1, generator=generator)
    return clean[kind] * scatter + 0.3 * torch.randn(count, features, generator=generator), kind
