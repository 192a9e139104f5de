"""SGD that keeps each unit's incoming weights inside a ball (max-norm, Srebro & Shraibman 2005)."""

import os

import torch


class BallMixin:
    radius = 2.0

    def project(self):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.dim() < 2:
                    continue
                if os.environ.get("PLANTED_FIX") == "1":
                    torch.renorm(weight, 2, 0, self.radius, out=weight)
                    continue
                for unit in weight:
                    length = unit.norm()
                    if length > self.radius:
                        unit.mul_(self.radius / length)


class BallSGD(BallMixin, torch.optim.SGD):
    def __init__(self, params, lr, radius=2.0, **more):
        super().__init__(params, lr, **more)
        self.radius = radius

    def step(self, closure=None):
        loss = super().step(closure)
        with torch.no_grad():
            self.project()
        return loss
