import torch


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            for p in params:
                if not self.state[p]:
                    self.state[p]["mean"] = torch.zeros_like(p)
            means = [self.state[p]["mean"] for p in params]
            fast, slow = group["betas"]
            way = torch._foreach_lerp(means, grads, 1 - fast)
            torch._foreach_sign_(way)
            torch._foreach_mul_(params, 1 - group["lr"] * group["decay"])
            torch._foreach_add_(params, way, alpha=-group["lr"])
            torch._foreach_lerp_(means, grads, 1 - slow)
