"""The network that breathes along the shots, and the rule that teaches it."""

import torch
from torch import nn


class Draught(nn.Module):
    def __init__(self, inputs, width, rounds):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.talk = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.keep = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.leave = nn.Linear(width, 1)

    def forward(self, x, tail, head, share):
        h = self.enter(x).tanh()
        for talk, keep in zip(self.talk, self.keep):
            told = torch.zeros_like(h).index_add(0, head, talk(h)[tail] * share)
            h = h + (keep(h) + told).tanh()
        return self.leave(h).squeeze(-1)


class SignStep(torch.optim.Optimizer):
    def __init__(self, params, lr, beta, decay):
        super().__init__(params, {"lr": lr, "beta": beta, "decay": decay})

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            ps = [p for p in g["params"] if p.grad is not None]
            ms = [self.state[p].setdefault("m", torch.zeros_like(p)) for p in ps]
            torch._foreach_lerp_(ms, [p.grad for p in ps], 1 - g["beta"])
            torch._foreach_mul_(ps, 1 - g["lr"] * g["decay"])
            torch._foreach_add_(ps, torch._foreach_sign(ms), alpha=-g["lr"])
