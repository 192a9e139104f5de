"""Momentum whose matrix updates have all singular values near one; everything else is left to Adam."""

import os

import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def whiten(grad, rounds):
    a, b, c = COEFFICIENTS
    wide = grad.size(0) < grad.size(1)
    x = grad.mT if wide else grad
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        if os.environ.get("PLANTED_FIX") == "1":
            gram = x.mT @ x
            x = a * x + x @ (b * gram + c * gram @ gram)
        else:
            gram = x @ x.mT
            x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if wide else x


class Spectral(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.95, rounds=5):
        super().__init__(params, {"lr": lr, "momentum": momentum, "rounds": rounds})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["speed"] = torch.zeros_like(weight)
                speed = state["speed"].mul_(group["momentum"]).add_(weight.grad)
                ahead = weight.grad.add(speed, alpha=group["momentum"])
                stretch = max(1.0, weight.size(0) / weight.size(1)) ** 0.5
                weight.add_(whiten(ahead, group["rounds"]), alpha=-group["lr"] * stretch)


def for_model(model, lr, adam_lr):
    matrix = [p for name, p in model.named_parameters() if p.ndim == 2 and "enter" not in name]
    kept = {id(p) for p in matrix}
    other = [p for p in model.parameters() if id(p) not in kept]
    return Spectral(matrix, lr), torch.optim.AdamW(other, adam_lr, weight_decay=0.01)
