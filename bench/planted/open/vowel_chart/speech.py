import torch

VOWELS = {"i": (280, 2250), "e": (450, 2000), "a": (750, 1300), "o": (480, 900), "u": (310, 800), "y": (290, 1900)}


def spectra(count, frames=24, bands=32, seed=19):
    """Log spectra of short vowels: two formants that drift, and a speaker's tilt."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(len(VOWELS), (count,), generator=g)
    centre = torch.tensor(list(VOWELS.values()), dtype=torch.float32)[kind]
    speaker = 1 + 0.12 * torch.randn(count, 1, generator=g)
    drift = 1 + 0.05 * torch.randn(count, 2, generator=g)[:, :, None] * torch.linspace(-1, 1, frames)
    formants = (centre * speaker).unsqueeze(-1) * drift
    axis = torch.linspace(100, 3200, bands)
    bumps = torch.exp(-((axis - formants.unsqueeze(-1)) ** 2) / (2 * 140.0**2)).sum(1)
    return bumps + 0.25 * torch.randn(count, frames, bands, generator=g), kind
