"""Forecasts the level an hour ahead at every gauge. Everything that may be turned is in gauges.ini."""

import configparser
import os
import tempfile
import time

import torch
import torch.nn.functional as F

from almanac import SPEEDS
from archive import read_all, write_logs

ini = configparser.ConfigParser()
ini.read("gauges.ini")
net, fit, era = ini["net"], ini["fit"], ini["archive"]["era"]
PAST, AHEAD, WIDTH = (net.getint(key) for key in ("past", "ahead", "width"))
torch.manual_seed(fit.getint("seed"))
torch.set_num_threads(1)

with tempfile.TemporaryDirectory() as folder:
    numbers = {key: ini["archive"].getint(key) for key in ("gauges", "readings", "minutes")}
    write_logs(folder, era, **numbers, seed=fit.getint("seed"))
    level, turn = map(torch.from_numpy, read_all(folder, era))
print(f"{level.numel()} readings of {len(level)} gauges", flush=True)

sizes = [PAST + 2 * len(SPEEDS), WIDTH, WIDTH, WIDTH, 1]
weights = [torch.randn(b, a).mul_((1.6 / a) ** 0.5).requires_grad_() for a, b in zip(sizes, sizes[1:])]
biases = [torch.zeros(b, requires_grad=True) for b in sizes[1:]]
params = weights + biases
drift = [torch.zeros_like(p) for p in params]


def predict(x):
    for weight, bias in zip(weights[:-1], biases[:-1]):
        x = F.silu(F.linear(x, weight, bias))
    return F.linear(x, weights[-1], biases[-1]).squeeze(-1)


def draw(n):
    gauge = torch.randint(len(level), (n,))
    now = torch.randint(PAST, level.shape[1] - AHEAD, (n,))
    past = level[gauge[:, None], now[:, None] - torch.arange(PAST)]
    return torch.cat([past, turn[gauge, now + AHEAD]], 1), level[gauge, now + AHEAD]


@torch.no_grad()
def lion(grads, rate, fast=0.9, slow=0.99):
    moves = torch._foreach_lerp(drift, grads, 1 - fast)
    torch._foreach_sign_(moves)
    torch._foreach_add_(params, moves, alpha=-rate)
    torch._foreach_lerp_(drift, grads, 1 - slow)


steps, began = int(os.environ.get("PLANTED_STEPS", fit.getint("steps"))), time.perf_counter()
for step in range(1, steps + 1):
    x, y = draw(fit.getint("batch"))
    loss = F.smooth_l1_loss(predict(x), y)
    lion(torch.autograd.grad(loss, params), fit.getfloat("rate") * min(1, 2 - 2 * step / (steps + 1)))
    if step % 100 == 0:
        print(f"{step}: {loss.item():.5f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
