"""Ten-minute telemetry of wind turbines, made up: channels that follow one gust."""

import math

import torch


def telemetry(count: int, span: int, channels: int, seed: int) -> torch.Tensor:
    """Standardised windows [window, channel * span]."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.linspace(0, 1, span)
    phase = torch.rand(count, 1, 1, generator=generator) * 2 * math.pi
    speed = 1 + 3 * torch.rand(count, 1, 1, generator=generator)
    lag = torch.linspace(0, 0.3, channels)[None, :, None]
    wave = torch.sin(2 * math.pi * speed * (time - lag) + phase) * torch.linspace(1, 0.4, channels)[None, :, None]
    wave = wave + 0.1 * torch.randn(count, channels, span, generator=generator)
    return ((wave - wave.mean()) / wave.std()).flatten(1)


def draws(windows: torch.Tensor, size: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield windows[torch.randint(len(windows), (size,), generator=generator)]
