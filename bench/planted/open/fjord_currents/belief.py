"""AdaBelief with decoupled decay."""

import os

import torch


def rule(p, g, m, s, t, lr, b1, b2, eps, decay):
    p.mul_(1 - lr * decay)
    m.mul_(b1).add_(g, alpha=1 - b1)
    diff = g - m
    s.mul_(b2).addcmul_(diff, diff, value=1 - b2).add_(eps)
    step = m / (1 - b1**t)
    scale = (s / (1 - b2**t)).sqrt().add_(eps)
    p.sub_(lr * step / scale)


class AdaBelief:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-10, decay=1e-2):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.decay, self.t = lr, betas, eps, decay, 0
        self.flat = os.environ.get("PLANTED_FIX") == "1"
        if self.flat:
            self.size = [p.numel() for p in self.params]
            whole = torch.cat([p.detach().flatten() for p in self.params])
            for p, part in zip(self.params, whole.split(self.size)):
                p.data = part.view_as(p)
            self.state = [(whole, torch.zeros_like(whole), torch.zeros_like(whole))]
        else:
            self.state = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in self.params]

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        grads = [torch.cat([p.grad.flatten() for p in self.params])] if self.flat else [p.grad for p in self.params]
        for (p, m, s), g in zip(self.state, grads):
            rule(p, g, m, s, self.t, self.lr, *self.betas, self.eps, self.decay)
