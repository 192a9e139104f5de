import torch


class Lion(torch.optim.Optimizer):
    """Moves by the sign of a mixed momentum; weights shrink a little each time."""

    def __init__(self, params, lr=3e-4, betas=(0.9, 0.98), shrink=0.02):
        super().__init__(params, {"lr": lr, "betas": betas, "shrink": shrink})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            live = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in live]
            slow = [self.state[p].setdefault("slow", torch.zeros_like(p)) for p in live]
            first, second = group["betas"]
            way = torch._foreach_lerp(slow, grads, 1 - first)
            torch._foreach_sign_(way)
            torch._foreach_mul_(live, 1 - group["lr"] * group["shrink"])
            torch._foreach_add_(live, way, alpha=-group["lr"])
            torch._foreach_lerp_(slow, grads, 1 - second)
