"""Adagrad as in the paper; ours, because we want the accumulator to start at a value of our choice for each table."""

import torch
from torch.optim import Optimizer


class Adagrad(Optimizer):
    def __init__(self, params, lr=0.01, start=0.05, eps=1e-10):
        super().__init__(params, {"lr": lr, "start": start, "eps": eps})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["total"] = torch.full_like(p, group["start"])

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                total = self.state[p]["total"]
                if p.grad.is_sparse:
                    self.rows(p, total, group)
                    continue
                total.addcmul_(p.grad, p.grad)
                p.addcdiv_(p.grad, total.sqrt().add_(group["eps"]), value=-group["lr"])

    @staticmethod
    def rows(p, total, group):
        """The rows that took part, each once."""
        grad = p.grad.coalesce()
        at, value = grad.indices()[0], grad.values()
        seen = total[at].addcmul_(value, value)
        total[at] = seen
        p[at] = p[at].addcdiv_(value, seen.sqrt_().add_(group["eps"]), value=-group["lr"])
