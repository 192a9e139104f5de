"""A small training engine: events, and handlers that run at some of them."""

import time
from collections import defaultdict


class Every:
    """Fires at each nth event."""

    def __init__(self, n):
        self.n = max(1, int(n))

    def __call__(self, count):
        return count % self.n == 0

    @classmethod
    def per_epoch(cls, times, epoch_length):
        return cls(epoch_length // times)


class Engine:
    def __init__(self, update, epoch_length):
        self.update, self.epoch_length = update, epoch_length
        self.handlers, self.iteration, self.metrics = defaultdict(list), 0, {}

    def on(self, event, when=None):
        def add(handler):
            self.handlers[event].append((when or Every(1), handler))
            return handler

        return add

    def fire(self, event, count):
        for when, handler in self.handlers[event]:
            if when(count):
                handler(self)

    def run(self, batches, limit):
        began = time.perf_counter()
        for batch in batches:
            self.iteration += 1
            self.output = self.update(self, batch)
            self.fire("iteration", self.iteration)
            if self.iteration % self.epoch_length == 0:
                self.fire("epoch", self.iteration // self.epoch_length)
            if self.iteration == limit:
                break
        return time.perf_counter() - began
