"""A second-order step: gradients are whitened along rows and columns, with the length of an RMSprop step."""

import os

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


def inverse_root(moment: torch.Tensor, power: float, floor: float) -> torch.Tensor:
    """moment ** -power for a symmetric matrix."""
    values, vectors = torch.linalg.eigh(moment)
    values = values.clamp_min(0) + floor * values.amax().clamp_min(1e-12)
    return (vectors * values.pow(-power)) @ vectors.T


class Kron(torch.optim.Optimizer):
    def __init__(
        self, params, lr: float, decay: float = 0.95, momentum: float = 0.5, floor: float = 1e-4, largest: int = 512,
        refresh: int = 25 if FIXED else 1,
    ) -> None:  # fmt: skip
        super().__init__(params, dict(lr=lr, decay=decay, momentum=momentum, floor=floor, largest=largest, refresh=refresh))

    def _begin(self, value: torch.Tensor, group: dict) -> dict:
        state = {"count": 0, "square": torch.zeros_like(value), "motion": torch.zeros_like(value), "sides": []}
        if value.dim() == 2:
            for axis, size in enumerate(value.shape):
                if 1 < size <= group["largest"]:
                    state["sides"].append({"axis": axis, "moment": torch.zeros(size, size), "root": torch.eye(size)})
        return state

    def _whiten(self, grad: torch.Tensor, state: dict, group: dict) -> torch.Tensor:
        power = 0.25 if len(state["sides"]) == 2 else 0.5
        stale = state["count"] % group["refresh"] == 0
        white = grad
        for side in state["sides"]:
            spread = grad @ grad.T if side["axis"] == 0 else grad.T @ grad
            side["moment"].lerp_(spread, 1 - group["decay"])
            if stale:
                side["root"] = inverse_root(side["moment"], power, group["floor"])
            white = side["root"] @ white if side["axis"] == 0 else white @ side["root"]
        return white

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for value in group["params"]:
                if value.grad is None:
                    continue
                if not self.state[value]:
                    self.state[value] = self._begin(value, group)
                state, grad = self.state[value], value.grad
                state["square"].mul_(group["decay"]).addcmul_(grad, grad, value=1 - group["decay"])
                plain = grad / (state["square"].sqrt() + 1e-8)
                if state["sides"]:
                    white = self._whiten(grad, state, group)
                    plain = white * (plain.norm() / white.norm().clamp_min(1e-12))
                state["motion"].mul_(group["momentum"]).add_(plain)
                value.add_(state["motion"], alpha=-group["lr"])
                state["count"] += 1
