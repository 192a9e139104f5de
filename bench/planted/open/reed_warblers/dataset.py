"""Random crops from the recordings, as log spectrograms."""

import torch
from recordings import Recording
from torch.utils.data import Dataset


class TimeMask:
    """Blanks a few stretches of time, and one band of frequency."""

    def __init__(self, stretches: int = 3, longest: int = 8, band: int = 10) -> None:
        self.stretches, self.longest, self.band = stretches, longest, band

    def __call__(self, spectrogram: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        bins, frames = spectrogram.shape
        for _ in range(self.stretches):
            start = int(torch.randint(frames - self.longest, (1,), generator=generator))
            spectrogram[:, start : start + self.longest] = 0.0
        low = int(torch.randint(bins - self.band, (1,), generator=generator))
        spectrogram[low : low + self.band] = 0.0
        return spectrogram


class Crops(Dataset):
    def __init__(self, listing, config, size: int, train: bool) -> None:
        self.recordings = [(Recording(path), species) for path, species in listing]
        self.config, self.size, self.train = config, size, train
        self.window = torch.hann_window(config.n_fft)
        self.mask = TimeMask()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int):
        generator = torch.Generator().manual_seed(self.config.seed * 100_003 + index + (0 if self.train else 7_000_000))
        recording, species = self.recordings[index % len(self.recordings)]
        start = int(torch.randint(recording.length - self.config.crop, (1,), generator=generator))
        wave = torch.from_numpy(recording.stretch(start, self.config.crop))
        wave = wave + 0.02 * torch.randn(wave.shape, generator=generator)
        spectrum = torch.stft(wave, self.config.n_fft, self.config.hop, window=self.window, return_complex=True)
        spectrogram = torch.log1p(10 * spectrum.abs())
        if self.train:
            spectrogram = self.mask(spectrogram, generator)
        return spectrogram[None], species
