"""Webs laid on a shelf, ready to be taken down in batches."""

import os

import numpy as np
import torch

from webs import FEATURES


class Shelf:
    def __init__(self, webs, seed):
        self.webs = webs
        self.room = max(len(x) for x, _, _ in webs)
        self.g = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.webs)

    def batches(self, size):
        order = torch.randperm(len(self.webs), generator=self.g).tolist()
        for first in range(0, len(order) - size + 1, size):
            yield self.take([self.webs[i] for i in order[first : first + size]])

    def take(self, webs):
        room = self.room
        if os.environ.get("PLANTED_FIX") == "1":
            room = max(len(x) for x, _, _ in webs)
        x = np.zeros((len(webs), room, FEATURES), np.float32)
        ties = np.zeros((len(webs), room, room), np.float32)
        there = np.zeros((len(webs), room, 1), np.float32)
        for i, (points, threads, _) in enumerate(webs):
            x[i, : len(points)] = points
            ties[i, threads[:, 0], threads[:, 1]] = 1
            ties[i, threads[:, 1], threads[:, 0]] = 1
            there[i, : len(points)] = 1
        ties /= np.maximum(ties.sum(-1, keepdims=True), 1)
        species = torch.tensor([s for _, _, s in webs])
        return tuple(map(torch.from_numpy, (x, ties, there))) + (species,)
