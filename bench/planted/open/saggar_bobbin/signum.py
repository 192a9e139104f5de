import torch


class Signum(torch.optim.Optimizer):
    """Sign of the momentum, as in Lion, with decay."""

    def __init__(self, params, lr, inner=0.9, outer=0.99, decay=0.02):
        super().__init__(params, dict(lr=lr, inner=inner, outer=outer, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            live = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in live]
            for p in live:
                if p not in self.state:
                    self.state[p]["m"] = torch.zeros_like(p)
            m = [self.state[p]["m"] for p in live]
            way = torch._foreach_lerp(grads, m, group["inner"])
            torch._foreach_sign_(way)
            torch._foreach_mul_(live, 1 - group["lr"] * group["decay"])
            torch._foreach_add_(live, way, alpha=-group["lr"])
            torch._foreach_lerp_(m, grads, 1 - group["outer"])
