import numpy as np
import torch


def record(n, words, rate, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(rate) / rate
    label = rng.integers(0, words, n)
    waves = np.zeros((n, rate), np.float32)
    for i, w in enumerate(label):
        f0 = 180 + 70 * w + rng.normal(0, 8)
        sweep = np.sin(2 * np.pi * (f0 * t + (30 + 25 * (w % 3)) * t**2))
        formant = 0.5 * np.sin(2 * np.pi * (3.1 + 0.2 * (w // 3)) * f0 * t)
        envelope = np.exp(-(((t - rng.uniform(0.35, 0.6)) / 0.18) ** 2))
        waves[i] = (sweep + formant) * envelope
    return waves, label


def stream(waves, label, batch, augment, seed):
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(len(waves))
        for i in range(0, len(order) - batch + 1, batch):
            pick = order[i : i + batch]
            x = np.stack([augment(waves[j], rng) for j in pick]).astype(np.float32)
            yield torch.from_numpy(x), torch.from_numpy(label[pick])
