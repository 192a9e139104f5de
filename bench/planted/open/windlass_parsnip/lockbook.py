"""The lock-keeper's book: where and when the forecast was off by more than a hand, over the whole run."""

import os
from collections import defaultdict

import numpy as np

HAND = 0.4


class Entry:
    __slots__ = ("count", "total", "over", "worst")

    def __init__(self):
        self.count, self.total, self.over, self.worst = 0, 0.0, 0, 0.0

    def add(self, off):
        self.count += 1
        self.total += off
        if off > HAND:
            self.over += 1
        self.worst = max(self.worst, off)


class Lockbook:
    def __init__(self, locks):
        self.pages = defaultdict(Entry)
        self.locks = locks
        self.sheet = np.zeros((3, locks, 168))
        self.worst = np.zeros((locks, 168))

    def enter(self, told, came, week):
        off = (told.detach() - came).abs().numpy()
        week = week.numpy()
        if os.environ.get("PLANTED_FIX") == "1":
            return self._rule(off, week)
        for run, hour in zip(off, week):
            for lock, hours in enumerate(run):
                for ahead, value in enumerate(hours.tolist()):
                    self.pages[lock, (int(hour) + ahead) % 168].add(value)

    def _rule(self, off, week):
        hour = (week[:, None] + np.arange(off.shape[-1])) % 168
        cell = (np.arange(self.locks)[None, :, None] * 168 + hour[:, None, :]).ravel()
        off = off.ravel()
        size = self.locks * 168
        for row, weights in enumerate((None, off, off > HAND)):
            self.sheet[row] += np.bincount(cell, weights, minlength=size).reshape(self.locks, 168)
        np.maximum.at(self.worst.reshape(-1), cell, off)

    def trouble(self, top=3):
        if self.pages:
            rows = [(e.over / e.count, lock, hour) for (lock, hour), e in self.pages.items()]
            return sorted(rows, reverse=True)[:top]
        share = self.sheet[2] / np.maximum(self.sheet[0], 1)
        first = np.argsort(share, axis=None)[::-1][:top]
        return [(share.flat[i], *divmod(int(i), 168)) for i in first]
