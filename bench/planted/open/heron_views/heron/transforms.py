import numpy as np
import torch

from . import curves


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image, rng):
        for step in self.steps:
            image = step(image, rng)
        return image


class Flip:
    def __call__(self, image, rng):
        if rng.random() < 0.5:
            image = image[:, ::-1]
        if rng.random() < 0.5:
            image = image[::-1]
        return image


class Stain:
    def __init__(self, low=0.4, high=2.5):
        self.low, self.high = low, high

    def __call__(self, image, rng):
        return curves.remap(image, curves.absorption(rng.uniform(self.low, self.high)))


class ToTensor:
    def __init__(self, mean=0.6, std=0.2):
        self.mean, self.std = mean, std

    def __call__(self, image, rng):
        planes = np.ascontiguousarray(image.transpose(2, 0, 1))
        return torch.from_numpy(planes).sub_(self.mean).div_(self.std)


def default():
    return Compose(Flip(), Stain(), ToTensor())
