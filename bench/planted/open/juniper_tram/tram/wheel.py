import torch
from torch import nn


class Wheel(nn.Module):
    """Short spectra of the hum, then a small encoder over time."""

    def __init__(self, channels: int, window: int, width: int) -> None:
        super().__init__()
        self.window = window
        self.register_buffer("taper", torch.hann_window(window))
        self.lift = nn.Linear(channels * (window // 2 + 1), width)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.wear = nn.Linear(width, 1)

    def forward(self, track: torch.Tensor) -> torch.Tensor:
        frames = track.unfold(1, self.window, self.window // 2) * self.taper
        power = torch.fft.rfft(frames).abs().log1p().flatten(2)
        return self.wear(self.encoder(self.lift(power)).mean(1)).squeeze(-1)
