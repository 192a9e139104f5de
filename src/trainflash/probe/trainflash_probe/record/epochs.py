"""Passes over the data, as the loader that trains begins them."""

from __future__ import annotations

import functools


class Epochs:
    """How often a training loader was begun. A loader begins when iterated; whether it trains shows with its first batch."""

    def __init__(self, torch, began=None):
        self.count = 0
        self._begun = False
        loader = torch.utils.data.DataLoader
        begin = loader.__iter__

        @functools.wraps(begin)
        def watched(this):
            self._begun = True
            if began is not None:
                began(this)
            return begin(this)

        watched.__wrapped__ = begin
        loader.__iter__ = watched

    def batch(self, loader_id):
        if self._begun:
            self.count += 1
        self._begun = False

    def other(self):
        self._begun = False
