import os

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class AdaptiveClip:
    """Brock et al. 2021: a unit's gradient may be at most `ratio` of the unit's weights."""

    def __init__(self, params, ratio=0.02, floor=1e-3):
        self.params = [p for p in params if p.dim() >= 2]
        self.ratio = ratio
        self.floor = floor

    @torch.no_grad()
    def __call__(self):
        for p in self.params:
            if p.grad is None:
                continue
            if FIXED:
                limit = p.flatten(1).norm(dim=1).clamp_min(self.floor) * self.ratio
                size = p.grad.flatten(1).norm(dim=1).clamp_min(1e-12)
                p.grad.mul_((limit / size).clamp(max=1.0).view(-1, *[1] * (p.dim() - 1)))
            else:
                for unit in range(p.shape[0]):
                    limit = self.ratio * max(p[unit].norm().item(), self.floor)
                    size = p.grad[unit].norm().item()
                    if size > limit:
                        p.grad[unit] *= limit / size
