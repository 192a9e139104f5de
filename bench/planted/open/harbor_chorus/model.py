"""Log spectra, convolutions over time, and a vote."""

import torch
from registry import register
from torch import nn


class Spectra(nn.Module):
    def __init__(self, size: int, hop: int) -> None:
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))

    @torch.no_grad()
    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        waves = torch.stft(sound, self.size, self.hop, window=self.window, return_complex=True)
        power = waves.real.square() + waves.imag.square()
        loud = torch.log(power + 1e-4)
        return (loud - loud.mean(dim=(1, 2), keepdim=True)) / (loud.std(dim=(1, 2), keepdim=True) + 1e-5)


@register("model", "listener")
class Listener(nn.Module):
    def __init__(self, width: int, layers: int, classes: int, size: int = 256, hop: int = 128) -> None:
        super().__init__()
        self.spectra = Spectra(size, hop)
        inside: list[nn.Module] = [nn.Conv1d(size // 2 + 1, width, 3, padding=1), nn.GELU()]
        for number in range(layers):
            inside += [nn.Conv1d(width, width, 3, padding=1 + number, dilation=1 + number), nn.GroupNorm(4, width), nn.GELU()]
        self.inside = nn.Sequential(*inside)
        self.vote = nn.Linear(2 * width, classes)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        x = self.inside(self.spectra(sound))
        return self.vote(torch.cat([x.mean(dim=-1), x.amax(dim=-1)], dim=-1))
