import numpy as np
import torch
from torch.utils.data import Dataset, Sampler


def draw(rng, side, strokes):
    page = np.zeros((side, side), np.float32)
    for y0, x0, y1, x1 in strokes:
        for t in np.linspace(0, 1, 2 * side):
            y = y0 + (y1 - y0) * t + rng.normal(0, 0.4)
            x = x0 + (x1 - x0) * t + rng.normal(0, 0.4)
            page[int(np.clip(y, 0, side - 1)), int(np.clip(x, 0, side - 1))] = 1.0
    return page


class Glyphs(Dataset):
    def __init__(self, classes, per_class, side, seed):
        rng = np.random.default_rng(seed)
        pages = []
        for _ in range(classes):
            strokes = rng.uniform(2, side - 2, (3, 4))
            pages.append([draw(rng, side, strokes) for _ in range(per_class)])
        self.pages = torch.from_numpy(np.array(pages))

    def __len__(self):
        return self.pages.shape[0] * self.pages.shape[1]

    def __getitem__(self, key):
        label, copy = key
        return self.pages[label, copy].unsqueeze(0), label


class EpisodeSampler(Sampler):
    """Yields the keys of one episode at a time: support first, then queries, class by class."""

    def __init__(self, s):
        self.s = s
        self.rng = np.random.default_rng(s.seed + 1)

    def __len__(self):
        return self.s.episodes_per_round

    def __iter__(self):
        for _ in range(self.s.episodes_per_round):
            labels = self.rng.choice(self.s.classes, self.s.ways, replace=False)
            keys = []
            for label in labels:
                copies = self.rng.choice(self.s.per_class, self.s.shots + self.s.queries, replace=False)
                keys += [(int(label), int(copy)) for copy in copies]
            yield keys
