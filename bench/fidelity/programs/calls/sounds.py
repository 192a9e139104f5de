"""Short calls of six birds, written as noise, chirps and trills; spectrograms of them."""
import math

import torch
from torch.utils.data import Dataset

RATE, LENGTH, KINDS = 4000, 1600, 6


def record(count, seed):
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.randint(KINDS, (count,), generator=generator)
    pitch = 300 + 150 * kinds + 160 * torch.rand(count, generator=generator)
    bend = (kinds % 3 - 1) * 900.0 * (0.5 + torch.rand(count, generator=generator))
    t = torch.arange(LENGTH) / RATE
    waves = torch.sin(2 * math.pi * (pitch[:, None] * t + 0.5 * bend[:, None] * t.square()))
    trill = 1 + 0.8 * torch.sin(2 * math.pi * (8 + 6 * (kinds // 3))[:, None] * t)
    return waves * trill + 1.2 * torch.randn(count, LENGTH, generator=generator), kinds


class Calls(Dataset):
    def __init__(self, count, seed, training):
        self.waves, self.kinds = record(count, seed)
        self.training = training
        self.window = torch.hann_window(128)

    def __len__(self):
        return len(self.waves)

    def augment(self, wave):
        wave = torch.roll(wave, int(torch.randint(-200, 200, ())))
        wave = wave * (0.7 + 0.6 * torch.rand(()))
        return wave + 0.1 * torch.randn(LENGTH)

    def spectrogram(self, wave):
        picture = torch.stft(wave, 128, 80, window=self.window, return_complex=True).abs().square()
        return torch.log(picture[:48] + 1e-4)[None]

    def mask(self, picture):
        picture = picture.clone()
        low = int(torch.randint(40, ()))
        picture[:, low : low + 8] = picture.mean()
        return picture

    def __getitem__(self, number):
        wave = self.waves[number]
        if self.training:
            wave = self.augment(wave)
        picture = self.spectrogram(wave)
        if self.training:
            picture = self.mask(picture)
        return (picture - picture.mean()) / picture.std(), int(self.kinds[number])
