"""Descent in Kronecker-factored coordinates, after Gupta et al. (2018), with the step size of the plain gradient."""

import os

import torch
from torch.optim import Optimizer


def due(state, every):
    if os.environ.get("PLANTED_FIX") == "1":
        return state["step"] % every == 0
    else:
        return state["step"] - state["since"] >= every


def root(factor, eps):
    scale = factor.diagonal().mean() + 1e-12
    values, vectors = torch.linalg.eigh(factor / scale)
    return (vectors * values.clamp(min=eps).pow(-0.25)) @ vectors.T


class Kron(Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.9, decay=0.95, eps=1e-3, every=25):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay, eps=eps, every=every))

    def birth(self, p):
        state = self.state[p]
        state.update(step=0, since=0, speed=torch.zeros_like(p))
        if p.ndim == 2:
            state["factors"] = [torch.eye(n) * 1e-6 for n in p.shape]
            state["roots"] = [torch.eye(n) for n in p.shape]
        return state

    def turned(self, grad, state, group):
        left, right = state["factors"]
        left.lerp_(grad @ grad.T, 1 - group["decay"])
        right.lerp_(grad.T @ grad, 1 - group["decay"])
        if due(state, group["every"]):
            state["roots"] = [root(factor, group["eps"]) for factor in state["factors"]]
        a, b = state["roots"]
        new = a @ grad @ b
        return new * (grad.norm() / (new.norm() + 1e-12))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p] or self.birth(p)
                state["step"] += 1
                way = self.turned(p.grad, state, group) if p.ndim == 2 else p.grad
                state["speed"].mul_(group["momentum"]).add_(way)
                p.sub_(state["speed"], alpha=group["lr"])
