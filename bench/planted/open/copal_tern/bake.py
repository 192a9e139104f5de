"""Predicts from the first marks of a fermentation when the dough is ready."""

import os
import time
from types import SimpleNamespace

import torch
from torch import nn

from doughs import Bakery
from hooks import SpilledJars, Voice, Warmup


def network(marks, width=256, depth=3):
    layers = [nn.Linear(marks, width)]
    for _ in range(depth):
        layers += [nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.GELU(), nn.Linear(width, 1))


def run(steps, batch=256, lr=1e-3, hooks=()):
    bakery = Bakery()
    net = network(bakery.x.shape[1])
    now = SimpleNamespace(step=0, bakery=bakery, net=net, opt=torch.optim.NAdam(net.parameters(), lr, foreach=True), clip=10.0)
    for hook in hooks:
        hook.begin(now)
    began = time.perf_counter()
    for jars, x, ready in bakery.stream(batch):
        miss = (net(x).squeeze(1) - ready).abs()
        loss = miss.clamp(max=now.clip).square().mean()
        now.opt.zero_grad()
        loss.backward()
        now.opt.step()
        now.step += 1
        now.jars, now.miss, now.loss = jars, miss.detach(), loss.detach()
        for hook in hooks:
            hook.after(now)
        if now.step == steps:
            break
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {now.loss:.5f}")


if __name__ == "__main__":
    torch.manual_seed(8)
    torch.set_num_threads(1)
    run(int(os.environ.get("PLANTED_STEPS", 1500)), hooks=[Warmup(30), SpilledJars(), Voice(100)])
