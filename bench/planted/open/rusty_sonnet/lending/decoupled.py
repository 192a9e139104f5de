"""Adam with decoupled weight decay (Loshchilov and Hutter, algorithm 2), with a switch to leave tensors undecayed."""

from collections.abc import Callable

import torch
from torch.optim import Optimizer


class DecoupledAdam(Optimizer):
    def __init__(self, params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self.move(weight, group)
        return loss

    def move(self, weight: torch.Tensor, group: dict) -> None:
        state, slope = self.state[weight], weight.grad
        if not state:
            state["t"] = 0
            state["m"] = torch.zeros_like(weight)
            state["v"] = torch.zeros_like(weight)
        first, second = group["betas"]
        state["t"] += 1
        state["m"] = first * state["m"] + (1 - first) * slope
        state["v"] = second * state["v"] + (1 - second) * slope**2
        mean = state["m"] / (1 - first ** state["t"])
        spread = state["v"] / (1 - second ** state["t"])
        pace = mean / (torch.sqrt(spread) + group["eps"])
        weight.copy_(weight - group["lr"] * (pace + group["weight_decay"] * weight))
