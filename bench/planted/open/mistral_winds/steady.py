"""Adam with decoupled decay, written out as in the paper."""

import math

import torch
from torch.optim import Optimizer


class Steady(Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                state["t"] += 1
                g = p.grad
                state["m"] = beta1 * state["m"] + (1 - beta1) * g
                state["v"] = beta2 * state["v"] + (1 - beta2) * g * g
                m_hat = state["m"] / (1 - beta1 ** state["t"])
                v_hat = state["v"] / (1 - beta2 ** state["t"])
                update = m_hat / (torch.sqrt(v_hat) + group["eps"])
                p.copy_(p - group["lr"] * group["weight_decay"] * p - group["lr"] * update)


def warm(step: int, warmup: int, total: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(total - warmup, 1))))


def build(model, options) -> Optimizer:
    betas = (options.beta1, options.beta2)
    if options.stock_update:
        return torch.optim.AdamW(model.parameters(), lr=options.lr, betas=betas, weight_decay=options.weight_decay, fused=True)
    return Steady(model.parameters(), options.lr, betas, weight_decay=options.weight_decay)
