import numpy as np
from torch.utils.data import Dataset


def paint(rng, side):
    """A fake stained patch: a few blobs over a pink ground."""
    yy, xx = np.mgrid[0:side, 0:side]
    ground = np.array([214.0, 150.0, 190.0])
    patch = np.tile(ground, (side, side, 1))
    for _ in range(rng.integers(3, 9)):
        cy, cx = rng.uniform(0, side, 2)
        radius = rng.uniform(2, 7)
        bump = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * radius**2))[..., None]
        patch -= bump * np.array([120.0, 110.0, 50.0])
    patch += rng.normal(0, 6, patch.shape)
    return patch.clip(0, 255).astype(np.uint8)


class PatchPairs(Dataset):
    def __init__(self, count, side, transform, seed):
        rng = np.random.default_rng(seed)
        self.patches = np.stack([paint(rng, side) for _ in range(count)])
        self.transform = transform
        self.seed = seed
        self.epoch = 0

    def __len__(self):
        return len(self.patches)

    def __getitem__(self, index):
        rng = np.random.default_rng((self.seed, self.epoch, index))
        patch = self.patches[index]
        return self.transform(patch, rng), self.transform(patch, rng)
