import numpy as np
import torch
from PIL import Image, ImageDraw
from torch.utils.data import Dataset
from torchvision import transforms


class ShapesDataset(Dataset):
    """Small pictures of one coloured shape on a grey ground, drawn on the fly from the index."""

    def __init__(self, n=1600, size=16, seed=0):
        self.n = n
        self.size = size
        self.seed = seed
        self.transform = transforms.Compose([
            transforms.Resize(size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.5] * 3),
        ])

    def __len__(self):
        return self.n

    def draw(self, idx):
        rng = np.random.default_rng(self.seed * 100003 + idx)
        s = 64
        img = Image.new("RGB", (s, s), (128, 128, 128))
        d = ImageDraw.Draw(img)
        x0, y0 = rng.integers(4, 24, 2)
        x1, y1 = rng.integers(40, 60, 2)
        color = tuple(int(c) for c in rng.integers(0, 256, 3))
        kind = rng.integers(3)
        if kind == 0:
            d.rectangle([x0, y0, x1, y1], fill=color)
        elif kind == 1:
            d.ellipse([x0, y0, x1, y1], fill=color)
        else:
            d.polygon([(x0, y1), (x1, y1), ((x0 + x1) // 2, y0)], fill=color)
        return img

    def __getitem__(self, idx):
        return self.transform(self.draw(idx))
