import torch


class Lion(torch.optim.Optimizer):
    """Sign of an interpolated momentum (Chen et al. 2023)."""

    def __init__(self, params, lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            slow = [self.state[p].setdefault("slow", torch.zeros_like(p)) for p in params]
            near, far = group["betas"]
            way = torch._foreach_sign(torch._foreach_lerp(slow, grads, 1 - near))
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, way, alpha=-group["lr"])
            torch._foreach_lerp_(slow, grads, 1 - far)
