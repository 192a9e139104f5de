import math

import numpy as np
import torch
from PIL import Image, ImageDraw


def glyph(rng, size=24, scale=4):
    big = size * scale
    image = Image.new("L", (big, big), 0)
    draw = ImageDraw.Draw(image)
    center, radius = big / 2 + rng.normal(0, 3, 2), big * rng.uniform(0.25, 0.4)
    corners = int(rng.integers(3, 7))
    turn = rng.uniform(0, 2 * math.pi)
    points = [(center[0] + radius * math.cos(turn + 2 * math.pi * k / corners),
               center[1] + radius * math.sin(turn + 2 * math.pi * k / corners)) for k in range(corners)]
    if rng.random() < 0.5:
        draw.polygon(points, fill=255)
    else:
        draw.line(points + points[:1], fill=255, width=scale * 2)
    return np.asarray(image.resize((size, size), Image.BILINEAR)), corners - 3


def glyph_set(n, seed):
    rng = np.random.default_rng(seed)
    images, labels = zip(*(glyph(rng) for _ in range(n)))
    x = torch.from_numpy(np.stack(images)).float().div(127.5).sub(1.0).unsqueeze(1)
    return x, torch.tensor(labels)
