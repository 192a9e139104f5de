"""Batches from a background thread, so that the network need not wait."""

import queue
import threading

import numpy as np
import torch

from conditioning import condition


class Feed:
    def __init__(self, catalogue, settings):
        self.catalogue = catalogue
        self.settings = settings
        self.queue: queue.Queue = queue.Queue(maxsize=settings.queue_size)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._produce, name="feed", daemon=True)

    def _order(self):
        rng = np.random.default_rng(self.settings.seed + 1)
        size = self.settings.batch_size
        while True:
            order = rng.permutation(len(self.catalogue))
            for start in range(0, len(order) - size + 1, size):
                yield order[start : start + size]

    def _make(self, indices):
        pairs = []
        for index in indices:
            event = self.catalogue[int(index)]
            pairs.append(condition(event, self.catalogue.gain[event.station], self.settings))
        waves = torch.from_numpy(np.stack([w for w, _ in pairs]))
        curves = torch.from_numpy(np.stack([c for _, c in pairs]))
        return waves, curves

    def _produce(self):
        for indices in self._order():
            batch = self._make(indices)
            while not self.stop.is_set():
                try:
                    self.queue.put(batch, timeout=0.5)
                    break
                except queue.Full:
                    continue
            if self.stop.is_set():
                return

    def __iter__(self):
        self.thread.start()
        while True:
            yield self.queue.get()

    def close(self):
        self.stop.set()
        self.thread.join(timeout=5)
