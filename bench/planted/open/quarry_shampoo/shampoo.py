import os

import torch
from torch.optim import Optimizer

EVERY = 25 if os.environ.get("PLANTED_FIX") == "1" else 1


class Shampoo(Optimizer):
    """Preconditions each side of a matrix by the inverse fourth root of its gradient statistics."""

    def __init__(self, params, lr=0.05, eps=1e-3):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(self.direction(p.grad, self.state[p], group["eps"]), alpha=group["lr"])

    def direction(self, grad, state, eps):
        if grad.dim() != 2:
            return grad
        state["count"] = state.get("count", -1) + 1
        for side, outer in (("left", grad @ grad.T), ("right", grad.T @ grad)):
            total = state.setdefault(side, eps * torch.eye(len(outer)))
            total.add_(outer)
            if state["count"] % EVERY == 0:
                values, vectors = torch.linalg.eigh(total)
                state[side + "_root"] = (vectors * values.clamp(min=eps).pow(-0.25)) @ vectors.T
        return state["left_root"] @ grad @ state["right_root"]
