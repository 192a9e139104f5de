import numpy as np


def draw_scenes(kinds, frames, height, width, noise, seed):
    """Greyscale frames of road signs: a shape by kind, somewhere in the picture."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:height, 0:width].astype(np.float32)
    images = np.empty((frames, height, width), dtype=np.float32)
    kinds_of = rng.integers(0, kinds, frames)
    for i, kind in enumerate(kinds_of):
        cy = rng.uniform(0.35, 0.65) * height
        cx = rng.uniform(0.35, 0.65) * width
        size = rng.uniform(9, 14)
        angle = np.arctan2(yy - cy, xx - cx)
        radius = np.hypot(yy - cy, xx - cx)
        edge = size * (1 + 0.25 * np.cos((kind % 4 + 2) * angle))
        sign = (radius < edge).astype(np.float32)
        if kind >= 4:
            sign -= radius < 0.5 * edge
        images[i] = sign + rng.normal(0, noise, (height, width))
    return images, kinds_of.astype(np.int64)
