import random
from collections import deque
from typing import NamedTuple

import torch
from torch import Tensor


class Transition(NamedTuple):
    state: list[float]
    action: int
    reward: float
    after: list[float]
    over: bool


class Replay:
    def __init__(self, capacity: int, seed: int) -> None:
        self.memory: deque[Transition] = deque(maxlen=capacity)
        self.rng = random.Random(seed)

    def __len__(self) -> int:
        return len(self.memory)

    def push(self, *values) -> None:
        self.memory.append(Transition(*values))

    def sample(self, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        drawn = [self.memory[self.rng.randrange(len(self.memory))] for _ in range(size)]
        state, action, reward, after, over = zip(*drawn)
        return (
            torch.tensor(state),
            torch.tensor(action),
            torch.tensor(reward),
            torch.tensor(after),
            torch.tensor(over, dtype=torch.float32),
        )
