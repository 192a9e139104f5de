"""A small trainer with hooks at named moments."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import torch
from torch import nn


class Engine:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterator) -> None:
        self.model, self.optimizer, self.batches = model, optimizer, batches
        self.hooks: dict[str, list[tuple[int, Callable]]] = defaultdict(list)
        self.step, self.loss, self.seconds = 0, float("nan"), 0.0

    def on(self, moment: str, every: int = 1) -> Callable:
        def add(hook: Callable[["Engine"], None]) -> Callable:
            self.hooks[moment].append((every, hook))
            return hook

        return add

    def _call(self, moment: str) -> None:
        for every, hook in self.hooks[moment]:
            if self.step % every == 0:
                hook(self)

    def _update(self) -> None:
        energies, labels = next(self.batches)
        loss = nn.functional.cross_entropy(self.model(energies).flatten(0, 1), labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self._call("gradients")
        self.optimizer.step()
        self.loss = loss.item()

    def run(self, steps: int) -> None:
        began = time.perf_counter()
        for self.step in range(1, steps + 1):
            self._update()
            self._call("step")
        self.seconds = time.perf_counter() - began
        self._call("end")
