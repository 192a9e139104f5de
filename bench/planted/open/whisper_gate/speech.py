"""Made-up keywords: formants that glide, as log-mel frames."""

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

WORDS = 10


def utter(words: torch.Tensor, frames: int, bands: int, rng: torch.Generator) -> torch.Tensor:
    """One clip for each word number."""
    count = len(words)
    time = torch.linspace(0, 1, frames)[None, :, None]
    band = torch.arange(bands)[None, None, :]
    sound = torch.zeros(count, frames, bands)
    for formant in range(3):
        start = (words * (3 + formant) + 5 * formant).remainder(bands)[:, None, None].float()
        glide = ((words * (formant + 2)).remainder(7) - 3.0)[:, None, None] * 2
        wobble = torch.randn(count, 1, 1, generator=rng)
        sound += torch.exp(-((band - start - glide * time - wobble) ** 2) / 3)
    onset = torch.randint(frames // 3, (count, 1, 1), generator=rng)
    heard = (torch.arange(frames)[None, :, None] >= onset).float()
    return sound * heard + 0.3 * torch.randn(sound.shape, generator=rng)


class Clips(L.LightningDataModule):
    def __init__(self, clips: int, held_out: int, frames: int, bands: int, batch_size: int, seed: int) -> None:
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage: str) -> None:
        hp, rng = self.hparams, torch.Generator().manual_seed(self.hparams.seed)
        parts = []
        for count in (hp.clips, hp.held_out):
            words = torch.randint(WORDS, (count,), generator=rng)
            parts.append(TensorDataset(utter(words, hp.frames, hp.bands, rng), words))
        self.learn, self.held_out = parts

    def train_dataloader(self) -> DataLoader:
        order = torch.Generator().manual_seed(self.hparams.seed)
        return DataLoader(self.learn, self.hparams.batch_size, shuffle=True, generator=order, drop_last=True)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.held_out, self.hparams.batch_size)
