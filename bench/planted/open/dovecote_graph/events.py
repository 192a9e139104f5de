"""A tiny event bus: the loop emits, whoever is interested listens."""

import collections
import time


class Bus:
    def __init__(self):
        self.listeners = collections.defaultdict(list)

    def on(self, event, listener):
        self.listeners[event].append(listener)
        return listener

    def emit(self, event, **facts):
        for listener in self.listeners[event]:
            listener(**facts)

    @staticmethod
    def clock():
        began = time.time()
        return lambda: time.time() - began
