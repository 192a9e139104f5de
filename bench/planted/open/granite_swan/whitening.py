"""Optimizers that whiten the gradient of a matrix from both sides."""

import os
from collections.abc import Callable

import torch
from torch.optim import Optimizer

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Whitening(Optimizer):
    """Gathers the statistics of the rows and columns; a subclass says which roots of them to take."""

    refresh = 20 if FIXED else 1
    exponent = -0.5

    def __init__(self, params, lr: float, momentum: float = 0.9, decay: float = 0.95, damping: float = 1e-4) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay, "damping": damping})

    def _root(self, statistics: torch.Tensor, damping: float) -> torch.Tensor:
        values, vectors = torch.linalg.eigh(statistics)
        values = values.clamp_min(0) + damping * values[-1].clamp_min(1e-12)
        return (vectors * values**self.exponent) @ vectors.T

    def _direction(self, p: torch.Tensor, state: dict, group: dict) -> torch.Tensor:
        gradient = p.grad
        if p.ndim != 2:
            square = state.setdefault("square", torch.zeros_like(p))
            square.lerp_(gradient**2, 1 - group["decay"])
            return gradient / (square.sqrt() + 1e-8)
        if not state.get("sides"):
            state["sides"] = [torch.zeros(size, size) for size in p.shape]
        for side, product in zip(state["sides"], (gradient @ gradient.T, gradient.T @ gradient), strict=True):
            side.lerp_(product, 1 - group["decay"])
        if state["age"] % self.refresh == 0:
            state["roots"] = [self._root(side, group["damping"]) for side in state["sides"]]
        left, right = state["roots"]
        whitened = left @ gradient @ right
        return whitened * (p.shape[0] ** 0.5 / whitened.norm().clamp_min(1e-12))

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state.setdefault("age", 0)
                direction = self._direction(p, state, group)
                momentum = state.setdefault("momentum", torch.zeros_like(p))
                momentum.mul_(group["momentum"]).add_(direction)
                p.add_(momentum, alpha=-group["lr"])
                state["age"] += 1


class Shampoo(Whitening):
    exponent = -0.25


class GentleShampoo(Whitening):
    """For the critic, which must not run ahead."""

    exponent = -0.125


OPTIMIZERS = {"shampoo": Shampoo, "gentle": GentleShampoo, "adam": torch.optim.Adam}
