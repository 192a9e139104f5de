"""Emulates the sliding law of a glacier tongue. No modules: parameters in, parameters out."""

import configparser
import os
import time

import torch
from torch.func import grad_and_value

from flowline import ensemble
from restart import Calendar, dump


def start(widths):
    p = {}
    for n, (a, b) in enumerate(zip(widths, widths[1:])):
        p[f"w{n}"] = torch.randn(b, a) * (1.8 / a) ** 0.5
        p[f"b{n}"] = torch.zeros(b)
    return p


def emulate(p, x):
    depth = len(p) // 2
    for n in range(depth):
        x = torch.nn.functional.linear(x, p[f"w{n}"], p[f"b{n}"])
        if n < depth - 1:
            x = torch.nn.functional.silu(x)
    return x


def misfit(p, x, y):
    gap = emulate(p, x) - y
    return gap.square().mean() + 0.1 * gap.diff(dim=1).square().mean()


def lion(p, inertia, grads, rate, beta1, beta2, decay):
    names = list(p)
    ps, ms, gs = [p[n] for n in names], [inertia[n] for n in names], [grads[n] for n in names]
    way = torch._foreach_lerp(ms, gs, 1 - beta1)
    torch._foreach_sign_(way)
    torch._foreach_mul_(ps, 1 - rate * decay)
    torch._foreach_add_(ps, way, alpha=-rate)
    torch._foreach_lerp_(ms, gs, 1 - beta2)


def march(cfg, p, x, y, steps):
    """Yields (step, loss) after each update."""
    d, batch = cfg["descent"], cfg["net"].getint("batch")
    rate, b1, b2, decay = (d.getfloat(k) for k in ("rate", "inertia", "memory", "decay"))
    inertia = {n: torch.zeros_like(v) for n, v in p.items()}
    calendar, slope = Calendar(cfg["calendar"]), grad_and_value(misfit)
    for step in range(1, steps + 1):
        rows = torch.randint(len(x), (batch,))
        grads, loss = slope(p, x[rows], y[rows])
        lion(p, inertia, grads, rate / (1 + step / 800), b1, b2, decay)
        if calendar.is_due("restart", step):
            dump("state", step, net=p, inertia=inertia)
        if calendar.is_due("report", step):
            print(f"{calendar.date(step)}  misfit {loss:.5f}", flush=True)
        yield step, loss


def main():
    cfg = configparser.ConfigParser()
    cfg.read("tongue.ini")
    torch.manual_seed(1850)
    x, y = ensemble(cfg["glacier"], 7)
    p = start([int(w) for w in cfg["net"]["widths"].split()])
    steps, began = int(os.environ.get("PLANTED_STEPS", 900)), time.perf_counter()
    for _, loss in march(cfg, p, x, y, steps):
        pass
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
