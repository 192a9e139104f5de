"""A cloud of krill, photographed from around: rays in, colours out."""

import torch
from torch.utils.data import Dataset


class RayBundles(Dataset):
    """Every item is one ready bundle of samples along rays."""

    def __init__(self, bundles, samples, seed):
        g = torch.Generator().manual_seed(seed)
        self.centres = torch.rand(40, 3, generator=g) * 2 - 1
        self.colours = torch.rand(40, 3, generator=g)
        self.points = torch.rand(bundles, samples, 3, generator=g) * 2 - 1

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        points = self.points[index]
        near = torch.softmax(-12 * torch.cdist(points, self.centres), dim=1)
        return points, near @ self.colours
