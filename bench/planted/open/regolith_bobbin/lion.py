import torch


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            drift = [self.state[p].setdefault("drift", torch.zeros_like(p)) for p in params]
            near, far = group["betas"]
            way = torch._foreach_lerp(drift, grads, 1 - near)
            torch._foreach_sign_(way)
            if group["decay"]:
                torch._foreach_mul_(params, 1 - group["lr"] * group["decay"])
            torch._foreach_add_(params, way, alpha=-group["lr"])
            torch._foreach_lerp_(drift, grads, 1 - far)
