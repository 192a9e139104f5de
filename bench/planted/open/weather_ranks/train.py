"""Nowcasting on a station grid, data parallel by hand: torchrun --nproc-per-node 2 train.py"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, tokens, ch):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(ch), nn.LayerNorm(ch)
        self.t1, self.t2 = nn.Linear(tokens, 2 * tokens), nn.Linear(2 * tokens, tokens)
        self.c1, self.c2 = nn.Linear(ch, 2 * ch), nn.Linear(2 * ch, ch)

    def forward(self, x):
        h = self.n1(x).transpose(1, 2)
        x = x + self.t2(nn.functional.gelu(self.t1(h))).transpose(1, 2)
        return x + self.c2(nn.functional.gelu(self.c1(self.n2(x))))


class Nowcast(nn.Module):
    def __init__(self, tokens=36, ch=64, depth=4):
        super().__init__()
        self.inp = nn.Linear(5, ch)
        self.body = nn.Sequential(*[MixerBlock(tokens, ch) for _ in range(depth)])
        self.out = nn.Linear(ch, 1)

    def forward(self, x):
        return self.out(self.body(self.inp(x))).squeeze(-1)


def average_gradients(model, world):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    if os.environ.get("PLANTED_FIX") == "1":
        flat = torch.cat([g.reshape(-1) for g in grads])
        dist.all_reduce(flat)
        flat /= world
        torch._foreach_copy_(grads, [c.view_as(g) for c, g in zip(flat.split([g.numel() for g in grads]), grads)])
        return
    for grad in grads:
        dist.all_reduce(grad)
        grad /= world


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Nowcast()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    g = torch.Generator().manual_seed(100 + rank)
    steps = int(os.environ.get("PLANTED_STEPS", 180))
    ema, t0 = None, time.time()
    for step in range(steps):
        x = torch.randn(56, 36, 5, generator=g)
        y = x[..., 0] * 0.5 + x[..., 1].roll(1, dims=1)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        average_gradients(model, world)
        opt.step()
        ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
        if rank == 0 and step % 50 == 0:
            print(step, f"{ema:.4f}", flush=True)
    if rank == 0:
        print(f"{steps} steps in {time.time() - t0:.2f}s, loss {ema:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
