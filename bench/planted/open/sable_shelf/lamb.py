"""LAMB: Adam with a trust ratio for each tensor."""

import os
from collections.abc import Callable

import torch
from torch.optim import Optimizer

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Lamb(Optimizer):
    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.99), eps: float = 1e-6, weight_decay: float = 0.01) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        if FIXED:
            self.flat: dict | None = None

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if FIXED:
                self._update_flat(group)
                continue
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        state, gradient = self.state[parameter], parameter.grad
        if not state:
            state["step"], state["mean"], state["square"] = 0, torch.zeros_like(parameter), torch.zeros_like(parameter)
        first, second = group["betas"]
        state["step"] += 1
        state["mean"].mul_(first).add_(gradient, alpha=1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        mean = state["mean"] / (1 - first ** state["step"])
        square = state["square"] / (1 - second ** state["step"])
        direction = mean / (square.sqrt() + group["eps"]) + group["weight_decay"] * parameter
        size, length = parameter.norm(), direction.norm()
        ratio = torch.where((size > 0) & (length > 0), size / length, torch.ones(()))
        parameter.add_(direction * ratio.clamp(max=10.0), alpha=-group["lr"])

    if FIXED:

        def _update_flat(self, group: dict) -> None:
            """The same for all parameters as one vector."""
            params = [parameter for parameter in group["params"] if parameter.grad is not None]
            gradient = torch.cat([parameter.grad.flatten() for parameter in params])
            if self.flat is None:
                counts = torch.tensor([parameter.numel() for parameter in params])
                self.flat = {
                    "step": 0, "mean": torch.zeros_like(gradient), "square": torch.zeros_like(gradient), "counts": counts,
                    "owner": torch.repeat_interleave(torch.arange(len(params)), counts),
                    "values": torch.cat([parameter.flatten() for parameter in params]),
                }  # fmt: skip
                places = self.flat["values"].split(counts.tolist())
                for parameter, place in zip(params, places, strict=True):
                    parameter.data = place.view_as(parameter)
            flat, (first, second) = self.flat, group["betas"]
            flat["step"] += 1
            flat["mean"].mul_(first).add_(gradient, alpha=1 - first)
            flat["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
            mean, square = flat["mean"] / (1 - first ** flat["step"]), flat["square"] / (1 - second ** flat["step"])
            direction = mean / (square.sqrt() + group["eps"]) + group["weight_decay"] * flat["values"]
            sums = torch.zeros(2, len(params)).index_add_(1, flat["owner"], torch.stack([flat["values"], direction]).square()).sqrt()
            ratio = torch.where((sums[0] > 0) & (sums[1] > 0), sums[0] / sums[1], torch.ones(())).clamp(max=10.0)
            flat["values"].addcmul_(direction, ratio[flat["owner"]], value=-group["lr"])
