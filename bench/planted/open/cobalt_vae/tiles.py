import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class GlazedTiles(L.LightningDataModule):
    """Blue patterns on white tiles: sums of a few waves with the symmetry of a tile."""

    def __init__(self, count: int = 2400, side: int = 32, batch: int = 24, seed: int = 7):
        super().__init__()
        self.count, self.side, self.batch, self.seed = count, side, batch, seed

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(self.seed)
        line = torch.linspace(0, torch.pi, self.side)
        y, x = torch.meshgrid(line, line, indexing="ij")
        weight = torch.randn(self.count, 4, 4, generator=g) / 3
        waves = torch.stack([torch.stack([torch.cos((a + 1) * y) * torch.cos((b + 1) * x) for b in range(4)]) for a in range(4)])
        pattern = torch.einsum("nab,abhw->nhw", weight, waves)
        tiles = torch.sigmoid(4 * (pattern + pattern.transpose(1, 2)))[:, None]
        cut = int(0.95 * self.count)
        self.train_set, self.val_set = TensorDataset(tiles[:cut]), TensorDataset(tiles[cut:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch)
