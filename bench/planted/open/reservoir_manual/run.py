# Water level of a chain of reservoirs: one little network per reservoir, shared loss.
# Own update rule (lookahead momentum with per-tensor trust ratio), so no torch.optim here.
import math
import os
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(4)

N_RES, N_IN, HID = 24, 10, 24
B = 512


def new_net():
    sizes = [(N_IN + 1, HID), (HID, HID), (HID, 1)]
    ps = []
    for a, b in sizes:
        ps.append((torch.randn(a, b) / math.sqrt(a)).requires_grad_())
        ps.append(torch.zeros(b).requires_grad_())
    return ps


def level(ps, x):
    w1, b1, w2, b2, w3, b3 = ps
    h = torch.tanh(x @ w1 + b1)
    h = torch.tanh(h @ w2 + b2)
    return h @ w3 + b3


class Trust:
    def __init__(self, params, lr=0.01, mom=0.9, k=5):
        self.params, self.lr, self.mom, self.k, self.n = params, lr, mom, k, 0
        self.vel = [torch.zeros_like(p) for p in params]
        self.slow = [p.detach().clone() for p in params]

    @torch.no_grad()
    def update(self):
        self.n += 1
        if os.environ.get("PLANTED_FIX") == "1":
            return self.update_lists()
        for p, v, s in zip(self.params, self.vel, self.slow):
            g = p.grad
            pn = torch.sqrt((p * p).sum())
            gn = torch.sqrt((g * g).sum())
            ratio = ((pn + 0.1) / (gn + 1e-3)).clamp(max=1.0)
            v.mul_(self.mom).add_(g * ratio)
            p.sub_(self.lr * v)
            norm = torch.sqrt((p * p).sum())
            p.mul_((10.0 / (norm + 1e-6)).clamp(max=1.0))
            s.add_(0.1 * (p - s))
            if self.n % self.k == 0:
                p.copy_(s)
            p.grad = None

    def update_lists(self):
        ps, gs = self.params, [p.grad for p in self.params]
        if not hasattr(self, "splits"):
            self.splits = torch.tensor([p.numel() for p in ps])
            self.index = torch.repeat_interleave(torch.arange(len(ps)), self.splits)
            self.v_flat, self.s_flat = torch.cat([v.reshape(-1) for v in self.vel]), torch.cat([s.reshape(-1) for s in self.slow])
        p, g = torch.cat([t.reshape(-1) for t in ps]), torch.cat([t.reshape(-1) for t in gs])
        pn = torch.zeros(len(ps)).index_add_(0, self.index, p * p).sqrt()
        gn = torch.zeros(len(ps)).index_add_(0, self.index, g * g).sqrt()
        ratio = ((pn + 0.1) / (gn + 1e-3)).clamp(max=1.0)
        self.v_flat.mul_(self.mom).add_(g * ratio[self.index])
        p = p - self.lr * self.v_flat
        norm = torch.zeros(len(ps)).index_add_(0, self.index, p * p).sqrt()
        p = p * (10.0 / (norm + 1e-6)).clamp(max=1.0)[self.index]
        self.s_flat.add_(0.1 * (p - self.s_flat))
        if self.n % self.k == 0:
            p = self.s_flat.clone()
        torch._foreach_copy_(ps, [c.view_as(t) for c, t in zip(p.split(self.splits.tolist()), ps)])
        for t in ps:
            t.grad = None


def season(g):
    rain = torch.randn(B, N_RES, N_IN, generator=g)
    carry, target = torch.zeros(B), []
    for r in range(N_RES):
        carry = 0.5 * carry + rain[:, r].mean(1) + 0.2 * torch.sin(rain[:, r, 0])
        target.append(carry)
    return rain, torch.stack(target, 1)


nets = [new_net() for _ in range(N_RES)]
rule = Trust([p for ps in nets for p in ps])
g = torch.Generator().manual_seed(5)
rain, target = season(g)
steps = int(os.environ.get("PLANTED_STEPS", 1240))
t0 = time.time()
for it in range(steps):
    above = torch.zeros(B, 1)
    loss = 0.0
    for r, ps in enumerate(nets):
        above = level(ps, torch.cat([rain[:, r], above], 1))
        loss = loss + F.mse_loss(above.squeeze(1), target[:, r])
    loss = loss / N_RES
    loss.backward()
    rule.update()
    if it % 100 == 0:
        print(it, float(loss))
print(f"{steps} steps in {time.time() - t0:.2f}s, loss {float(loss):.4f}")
