"""Learns how Xanthoria spreads over the gravestones of one churchyard."""

import os
import time

import torch

from bench import prepare, settings
from thallus import gravestone, spores, through_seasons, weights


def normalised_descent(w, memory, rate):
    with torch.no_grad():
        for p, m in zip(w, memory):
            m.mul_(0.9).add_(p.grad / (p.grad.norm() + 1e-8), alpha=0.1)
            p.sub_(m, alpha=rate)
            p.grad = None


def main():
    ini = settings()
    generator = prepare(ini)
    survey, growth = ini["survey"], ini["growth"]
    side, channels = survey.getint("side"), survey.getint("channels")
    w = weights(channels, growth.getint("hidden"))
    memory = [torch.zeros_like(p) for p in w]
    rate, diary = growth.getfloat("rate"), growth.getint("diary")
    steps = int(os.environ.get("PLANTED_STEPS", 450))

    began = time.perf_counter()
    for step in range(1, steps + 1):
        cells, at = spores(survey.getint("tiles"), side, channels, generator)
        stone = gravestone(at, side, generator)
        grown = through_seasons(cells, w, survey.getint("seasons"))
        loss = (grown[..., :3] - stone).square().mean()
        loss.backward()
        normalised_descent(w, memory, rate)
        rate *= growth.getfloat("decay")
        if step % diary == 0:
            print(f"after {step} photographs: {loss.item():.5f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
