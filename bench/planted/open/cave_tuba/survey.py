"""A surveyed cave: stations joined by shots (length, slope), some stations lie at the outlets where air enters."""

import heapq
import os
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Shot:
    tail: int
    head: int
    length: float
    drop: float

    def both(self):
        yield self.tail, self.head, self.length
        yield self.head, self.tail, self.length


@dataclass
class Survey:
    stations: np.ndarray
    shots: list = field(default_factory=list)
    outlets: list = field(default_factory=list)

    @classmethod
    def draw(cls, halls, rungs, outlets, seed):
        rng = np.random.default_rng(seed)
        grid = np.stack(np.meshgrid(np.arange(halls), np.arange(rungs), indexing="ij"), -1).reshape(-1, 2)
        at = np.concatenate([grid * 9.0 + rng.normal(0, 2, grid.shape), rng.normal(0, 4, (len(grid), 1))], 1)
        survey = cls(at, outlets=sorted(rng.choice(len(grid), outlets, replace=False).tolist()))
        for i, (hall, rung) in enumerate(grid.tolist()):
            if rung + 1 < rungs:
                survey.shoot(i, i + 1)
            if hall + 1 < halls and rng.random() < 0.06:
                survey.shoot(i, i + rungs)
        survey.shots = [survey.shots[i] for i in rng.permutation(len(survey.shots))]
        return survey

    def shoot(self, tail, head):
        gap = self.stations[head] - self.stations[tail]
        self.shots.append(Shot(tail, head, float(np.linalg.norm(gap)), float(gap[2])))

    def arcs(self):
        return [arc for shot in self.shots for arc in shot.both()]

    def creep(self, outlet):
        """Metres that air has to creep from an outlet to each station."""
        metres = [float("inf")] * len(self.stations)
        metres[outlet] = 0.0
        if os.environ.get("PLANTED_FIX") == "1":
            ways = [[] for _ in metres]
            for tail, head, length in self.arcs():
                ways[tail].append((head, length))
            heap = [(0.0, outlet)]
            while heap:
                far, at = heapq.heappop(heap)
                if far > metres[at]:
                    continue
                for head, length in ways[at]:
                    if far + length < metres[head]:
                        metres[head] = far + length
                        heapq.heappush(heap, (metres[head], head))
            return metres
        moved, arcs = True, self.arcs()
        while moved:
            moved = False
            for tail, head, length in arcs:
                if metres[tail] + length < metres[head]:
                    metres[head], moved = metres[tail] + length, True
        return metres

    def sheet(self):
        """What is known at each station: place, and a soft nearness to each outlet."""
        metres = np.array([self.creep(o) for o in self.outlets]).T
        place = (self.stations - self.stations.mean(0)) / self.stations.std(0)
        return np.concatenate([place, np.exp(-metres / 150)], 1).astype(np.float32)
