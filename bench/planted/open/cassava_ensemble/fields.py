"""Cassava fields: weather and soil over a season, and the yield with its spread."""

import threading
import queue

import torch

TRAITS = 48


class Fields:
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, TRAITS, generator=g)
        w = torch.randn(TRAITS, 6, generator=torch.Generator().manual_seed(71))
        h = torch.tanh(self.x @ w / 4)
        self.y = h[:, 0] * h[:, 1] + h[:, 2] - h[:, 3] ** 2 + 0.1 * (1 + h[:, 4].abs()) * torch.randn(count, generator=g)


class Bootstrap:
    """Each member gets its own sample of fields."""

    def __init__(self, fields, members, size, seed):
        self.fields, self.members, self.size = fields, members, size
        self.g = torch.Generator().manual_seed(seed)
        self.own = torch.randint(len(fields.x), (members, len(fields.x)), generator=self.g)

    def draw(self):
        at = torch.randint(self.own.shape[1], (self.members, self.size), generator=self.g)
        rows = self.own.gather(1, at)
        return self.fields.x[rows], self.fields.y[rows]


class Ahead(threading.Thread):
    """Draws batches while the model is busy."""

    def __init__(self, source, depth=4):
        super().__init__(daemon=True)
        self.source, self.queue = source, queue.Queue(depth)
        self.start()

    def run(self):
        while True:
            self.queue.put(self.source.draw())

    def __iter__(self):
        while True:
            yield self.queue.get()
