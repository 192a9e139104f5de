"""The archive: one PNG a stamp, as the scanner delivers them."""

import io

import numpy as np
from PIL import Image


def engrave(label: int, size: int, rng: np.random.Generator) -> np.ndarray:
    y, x = np.mgrid[0:size, 0:size] / size
    waves = np.sin(2 * np.pi * ((label + 2) * x + rng.uniform()) + (label % 3) * 4 * y)
    frame = (np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y)) < 0.06) * 0.4
    tone = np.stack([waves * 0.3 + 0.5, waves * -0.2 + 0.5, frame + 0.3], axis=-1)
    return np.clip((tone + rng.normal(0, 0.08, tone.shape)) * 255, 0, 255).astype(np.uint8)


def build(prints: int, size: int, classes: int, seed: int) -> list[tuple[bytes, int]]:
    rng = np.random.default_rng(seed)
    records = []
    for i in range(prints):
        out = io.BytesIO()
        Image.fromarray(engrave(i % classes, size, rng)).save(out, "PNG", compress_level=1)
        records.append((out.getvalue(), i % classes))
    return records
