"""Synthetic performance events: phrases that come back transposed, with a little noise."""

import numpy as np
import torch


def compose(n_events, vocab, seed):
    rng = np.random.default_rng(seed)
    motifs = [rng.integers(0, vocab, size=int(rng.integers(8, 28))) for _ in range(24)]
    follow = rng.dirichlet(np.full(24, 0.15), size=24)
    out, total, here = [], 0, 0
    while total < n_events:
        piece = (motifs[here] + 12 * int(rng.integers(0, 3))) % vocab
        noisy = rng.random(piece.size) < 0.03
        piece = np.where(noisy, rng.integers(0, vocab, size=piece.size), piece)
        out.append(piece)
        total += piece.size
        here = int(rng.choice(24, p=follow[here]))
    return torch.from_numpy(np.concatenate(out)[:n_events].astype(np.int64))


class Excerpts:
    def __init__(self, events, context, batch, seed):
        self.events = events
        self.context = context
        self.batch = batch
        self.gen = torch.Generator().manual_seed(seed)
        self.offsets = torch.arange(context + 1)

    def draw(self):
        starts = torch.randint(0, len(self.events) - self.context - 1, (self.batch, 1), generator=self.gen)
        window = self.events[starts + self.offsets]
        return window[:, :-1], window[:, 1:]
