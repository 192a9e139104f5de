import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.think(self.between(x))


class Ringer(nn.Module):
    def __init__(self, bells, length, width, layers, heads):
        super().__init__()
        self.bell, self.place = nn.Embedding(bells, width), nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.call = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, bells))

    def forward(self, rung):
        return self.call(self.blocks(self.bell(rung) + self.place[: rung.shape[1]]))


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.98), decay=0.02):
        super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            for p in params:
                self.state[p].setdefault("drift", torch.zeros_like(p))
            drift = [self.state[p]["drift"] for p in params]
            fast, slow = group["betas"]
            way = torch._foreach_sign(torch._foreach_lerp(drift, grads, 1 - fast))
            torch._foreach_mul_(params, 1 - group["lr"] * group["decay"])
            torch._foreach_add_(params, way, alpha=-group["lr"])
            torch._foreach_lerp_(drift, grads, 1 - slow)
