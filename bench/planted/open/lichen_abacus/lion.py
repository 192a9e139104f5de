import torch


class Lion(torch.optim.Optimizer):
    """Sign of the interpolated momentum, with decoupled decay."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            a, b = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(m.lerp(p.grad, 1 - a).sign_(), alpha=-group["lr"])
                m.lerp_(p.grad, 1 - b)
