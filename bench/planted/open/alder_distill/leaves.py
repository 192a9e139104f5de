import torch
from torch.utils.data import Dataset


class Leaves(Dataset):
    """Leaf outlines on a 40-pixel card; a random window and a flip each time one is drawn."""

    def __init__(self, count: int, seed: int, side: int = 40, crop: int = 32):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(8, (count,), generator=g)
        line = torch.linspace(-1.2, 1.2, side)
        y, x = torch.meshgrid(line, line, indexing="ij")
        turn = torch.rand(count, 1, 1, generator=g) * 0.8
        angle = torch.atan2(y, x)[None] + turn
        lobes = (self.labels + 2)[:, None, None]
        outline = 0.6 + 0.25 * torch.cos(lobes * angle)
        body = torch.sigmoid((outline - (x**2 + y**2).sqrt()[None]) * 15)
        body = body[:, None] * torch.rand(count, 3, 1, 1, generator=g)
        self.cards = (body + 0.15 * torch.randn(body.shape, generator=g)).contiguous()
        self.room, self.crop = side - crop + 1, crop

    def __len__(self):
        return len(self.cards)

    def __getitem__(self, index):
        top, left, flip = torch.randint(self.room * self.room * 2, (1,)).item(), 0, 0
        top, flip = divmod(top, 2)
        top, left = divmod(top, self.room)
        window = self.cards[index, :, top : top + self.crop, left : left + self.crop]
        return (window.flip(2) if flip else window), self.labels[index]
