"""Gesture recordings of a wrist sensor: one prototype trajectory per gesture, many noisy repetitions."""

import numpy as np
import torch


def smooth_curves(rng, n, channels, length, bands=6):
    t = np.linspace(0, 1, length)
    freq = np.arange(1, bands + 1)[:, None]
    basis = np.concatenate([np.sin(2 * np.pi * freq * t), np.cos(2 * np.pi * freq * t)])
    coef = rng.normal(size=(n, channels, 2 * bands)) / np.sqrt(bands)
    return (coef @ basis).astype(np.float32)


def make_gestures(n_classes, per_class, channels=6, length=96, seed=0):
    rng = np.random.default_rng(seed)
    protos = smooth_curves(rng, n_classes, channels, length)
    n = n_classes * per_class
    y = np.repeat(np.arange(n_classes), per_class)
    x = protos[y] + 0.45 * smooth_curves(rng, n, channels, length)
    x += 0.2 * rng.normal(size=x.shape).astype(np.float32)
    shift = rng.integers(-6, 7, size=n)
    for i in range(n):
        x[i] = np.roll(x[i], shift[i], axis=-1)
    return torch.from_numpy(x), torch.from_numpy(y)


class PKSampler:
    """Batches of P gestures with K recordings each."""

    def __init__(self, labels, p, k, seed):
        labels = labels.numpy()
        self.by_class = [np.flatnonzero(labels == c) for c in np.unique(labels)]
        self.p, self.k = p, k
        self.rng = np.random.default_rng(seed)

    def batch(self):
        classes = self.rng.choice(len(self.by_class), size=self.p, replace=False)
        return torch.from_numpy(np.concatenate([self.rng.choice(self.by_class[c], self.k, replace=False) for c in classes]))
