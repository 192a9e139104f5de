"""The replay memory, with old flights from the field."""

import random
from collections import deque
from dataclasses import dataclass

import torch


@dataclass
class Transition:
    state: list[float]
    action: int
    reward: float
    following: list[float]
    done: bool


class Memory:
    def __init__(self, capacity: int, seed: int) -> None:
        self.transitions: deque[Transition] = deque(maxlen=capacity)
        self.rng = random.Random(seed)

    def __len__(self) -> int:
        return len(self.transitions)

    def add(self, *parts) -> None:
        self.transitions.append(Transition(*parts))

    def sample(self, count: int) -> dict[str, torch.Tensor]:
        chosen = [self.transitions[self.rng.randrange(len(self.transitions))] for _ in range(count)]
        return {
            "state": torch.tensor([t.state for t in chosen]),
            "action": torch.tensor([t.action for t in chosen]),
            "reward": torch.tensor([t.reward for t in chosen]),
            "following": torch.tensor([t.following for t in chosen]),
            "done": torch.tensor([t.done for t in chosen], dtype=torch.float32),
        }
