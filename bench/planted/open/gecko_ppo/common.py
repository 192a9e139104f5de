"""Set-up shared by the experiments."""

import os
import random

import numpy as np
import torch

FIX = os.environ.get("PLANTED_FIX") == "1"


def set_up(seed: int, threads: int = 1) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    if not FIX:
        torch.autograd.set_detect_anomaly(True)
    torch.set_printoptions(precision=4, sci_mode=False)


def advantages(reward, value, done, last, gamma: float, lam: float) -> np.ndarray:
    out = np.zeros_like(reward)
    carry, after = np.zeros_like(last), last
    for t in reversed(range(len(reward))):
        alive = 1.0 - done[t]
        delta = reward[t] + gamma * after * alive - value[t]
        carry = delta + gamma * lam * alive * carry
        out[t], after = carry, value[t]
    return out


class Running:
    """Mean over a window, for the console."""

    def __init__(self, size: int):
        self.size, self.values = size, []

    def add(self, value: float) -> float:
        self.values = [*self.values[-self.size + 1 :], value]
        return sum(self.values) / len(self.values)
