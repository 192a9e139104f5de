import math

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch.utils.data import TensorDataset

LAND_COVER = ["grass", "water", "road", "building", "forest", "field"]
PALETTE = np.array([[96, 140, 70], [50, 80, 140], [120, 120, 120], [170, 90, 80], [40, 80, 40], [180, 160, 90]])


def tile(rng, size):
    mask = Image.new("L", (size, size), 0)
    draw = ImageDraw.Draw(mask)
    for _ in range(rng.integers(2, 5)):
        x, y = rng.integers(0, size, 2)
        w, h = rng.integers(size // 5, size // 2, 2)
        draw.rectangle([x, y, x + w, y + h], fill=5)
    for _ in range(rng.integers(1, 4)):
        x, y, r = *rng.integers(0, size, 2), int(rng.integers(6, size // 4))
        draw.ellipse([x - r, y - r, x + r, y + r], fill=int(rng.choice([1, 4])))
    for _ in range(rng.integers(1, 3)):
        a, c = rng.uniform(0, math.pi), rng.integers(0, size, 2)
        d = np.array([math.cos(a), math.sin(a)]) * size * 2
        draw.line([*(c - d), *(c + d)], fill=2, width=int(rng.integers(2, 5)))
    for _ in range(rng.integers(3, 9)):
        x, y = rng.integers(0, size, 2)
        w, h = rng.integers(4, 10, 2)
        draw.rectangle([x, y, x + w, y + h], fill=3)
    mask = np.asarray(mask)
    image = PALETTE[mask] * rng.uniform(0.75, 1.2) + rng.normal(0, 22, (size, size, 3))
    return np.clip(image, 0, 255).astype(np.uint8), mask


def land_cover_tiles(n, size, seed):
    rng = np.random.default_rng(seed)
    images, masks = zip(*(tile(rng, size) for _ in range(n)))
    images = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div(255.0).sub(0.45).div(0.2)
    return TensorDataset(images.contiguous(), torch.from_numpy(np.stack(masks)).long())
