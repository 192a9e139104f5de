"""Near-infrared spectra of ripening cheese: water, fat and protein bands over a drifting baseline."""

import math

import torch

BANDS = [(1190, 60), (1450, 45), (1730, 35), (1940, 50), (2050, 30), (2310, 25)]


def measure(count, card, seed):
    g = torch.Generator().manual_seed(seed)
    inputs, stages = card["inputs"], len(card["stages"])
    nm = torch.linspace(inputs["first_nm"], inputs["last_nm"], inputs["bands"])
    shapes = torch.stack([torch.exp(-(((nm - at) / wide) ** 2)) for at, wide in BANDS])
    stage = torch.randint(stages, (count,), generator=g)
    typical = 0.4 + 0.6 * torch.rand(stages, len(BANDS), generator=torch.Generator().manual_seed(5))
    amount = typical[stage] + 0.12 * torch.randn(count, len(BANDS), generator=g)
    tilt = torch.randn(count, 1, generator=g) * 0.1 * torch.linspace(-1, 1, len(nm))
    spectra = amount @ shapes + tilt + 0.02 * torch.randn(count, len(nm), generator=g)
    return (spectra - spectra.mean(1, keepdim=True)) / spectra.std(1, keepdim=True) / math.sqrt(2), stage
