import math

import torch


def sing(recordings, species, rate, seconds, window, hop, g):
    """Log spectrograms of mixed choruses, and which species sing in each."""
    n = int(rate * seconds)
    t = torch.arange(n) / rate
    pitch = torch.linspace(500, 3500, species)
    pulse = torch.linspace(8, 60, species)
    hann = torch.hann_window(window)
    features, present = [], []
    for _ in range(recordings):
        who = torch.rand(species, generator=g) < 0.25
        wave = 0.3 * torch.randn(n, generator=g)
        for s in who.nonzero().flatten().tolist():
            phase, loud = (torch.rand(2, generator=g)).tolist()
            wave += (0.2 + loud) * torch.sin(2 * math.pi * (pitch[s] * t + phase)) * (torch.sin(math.pi * pulse[s] * t) ** 2)
        power = torch.stft(wave, window, hop, window=hann, return_complex=True).abs().pow(2)
        features.append(torch.log(power[1:] + 1e-3))
        present.append(who.float())
    x = torch.stack(features)
    return (x - x.mean()) / x.std(), torch.stack(present)
