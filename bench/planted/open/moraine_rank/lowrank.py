"""Adam in a low-rank space: gradients of matrices are projected on their leading directions (as in GaLore)."""

import torch


class LowRankAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, rank=12, refresh=200, scale=1.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, rank=rank, refresh=refresh, scale=scale))

    def directions(self, grad, rank):
        u, _, _ = torch.linalg.svd(grad, full_matrices=False)
        return u[:, :rank].contiguous()

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, grad = self.state[p], p.grad
                state["t"] = state.get("t", 0) + 1
                low = grad.ndim == 2 and min(grad.shape) > 2 * group["rank"]
                if low:
                    if (state["t"] - 1) % group["refresh"] == 0:
                        state["basis"] = self.directions(grad, group["rank"])
                    grad = state["basis"].T @ grad
                if "m" not in state:
                    state["m"], state["v"] = torch.zeros_like(grad), torch.zeros_like(grad)
                state["m"].lerp_(grad, 1 - b1)
                state["v"].mul_(b2).addcmul_(grad, grad, value=1 - b2)
                m = state["m"] / (1 - b1 ** state["t"])
                v = state["v"] / (1 - b2 ** state["t"])
                update = m / (v.sqrt() + group["eps"])
                if low:
                    update = group["scale"] * (state["basis"] @ update)
                p.add_(update, alpha=-group["lr"])
        return loss
