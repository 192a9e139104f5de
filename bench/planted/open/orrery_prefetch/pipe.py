"""Batches, and a thread that prepares them while the model computes."""

import queue
import threading

import numpy as np
import torch

END = object()


def batches(archive, size, steps, seed=5):
    rng = np.random.default_rng(seed)
    pool = []
    for _ in range(steps):
        if len(pool) < size:
            pool = list(rng.permutation(len(archive)))
        rows, pool = pool[:size], pool[size:]
        curves, labels = zip(*(archive[i] for i in rows))
        yield torch.from_numpy(np.stack(curves)), torch.tensor(labels)


class Background:
    def __init__(self, source, depth):
        self.queue = queue.Queue(depth)
        self.source = source
        self.thread = threading.Thread(target=self.fill, daemon=True)
        self.thread.start()

    def fill(self):
        for item in self.source:
            self.queue.put(item)
        self.queue.put(END)

    def __iter__(self):
        while (item := self.queue.get()) is not END:
            yield item
