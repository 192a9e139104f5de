"""Those who look at each round and may turn a knob."""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import torch

from harbor.pilot import Round

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Knobs:
    entropy: float = 0.02
    clip: float = 1.0


@dataclass
class Crew:
    """Watchers in the order in which they joined."""

    knobs: Knobs = field(default_factory=Knobs)
    watchers: list[Callable[[Round, Knobs], None]] = field(default_factory=list)

    def join(self, watcher: Callable[[Round, Knobs], None]) -> Callable[[Round, Knobs], None]:
        self.watchers.append(watcher)
        return watcher

    def tell(self, done: Round) -> None:
        for watcher in self.watchers:
            watcher(done, self.knobs)


class Reward:
    """The mean reward of the last rounds."""

    def __init__(self, rounds: int = 200) -> None:
        self.last: deque[float] = deque(maxlen=rounds)

    def __call__(self, done: Round, knobs: Knobs) -> None:
        self.last.append(done.rewards.sum(0).mean().item())

    @property
    def mean(self) -> float:
        return sum(self.last) / len(self.last)


def likeness(actions: torch.Tensor) -> float:
    """How often two boats do the same at the same time."""
    time, boats = actions.shape
    if FIXED:
        counts = torch.nn.functional.one_hot(actions).sum(1)
        same = int((counts * (counts - 1) // 2).sum())
    else:
        logs = actions.t().tolist()
        same = sum(a == b for one, other in combinations(logs, 2) for a, b in zip(one, other))
    return same / (time * boats * (boats - 1) / 2)


class Variety:
    """More entropy where the boats all do the same."""

    def __init__(self, wanted: float = 0.3, rate: float = 0.05) -> None:
        self.wanted, self.rate = wanted, rate

    def __call__(self, done: Round, knobs: Knobs) -> None:
        knobs.entropy *= 1 + self.rate * (likeness(done.actions) - self.wanted)
        knobs.entropy = min(max(knobs.entropy, 0.001), 0.1)
