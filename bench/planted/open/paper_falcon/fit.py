"""Forge turbine telemetry, to fill the gaps of the fleet's archive."""

import argparse
import os
import time

import torch
from torch.nn.functional import softplus
from turbine.journal import Journal
from turbine.nets import Pair
from turbine.telemetry import draws, telemetry


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=int(os.environ.get("PLANTED_STEPS", 900)))
    parser.add_argument("--windows", type=int, default=4000)
    parser.add_argument("--span", type=int, default=36)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--noise", type=int, default=24)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--judge-rate", type=float, default=3e-4)
    parser.add_argument("--forger-rate", type=float, default=2e-4)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--seed", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    opts = options()
    torch.manual_seed(opts.seed)
    real = draws(telemetry(opts.windows, opts.span, opts.channels, opts.seed), opts.batch, opts.seed)
    pair = Pair(opts.noise, opts.width, opts.depth, opts.channels * opts.span)
    judge_optimizer = torch.optim.Adam(pair.judge.parameters(), opts.judge_rate, betas=(0.5, 0.99), fused=True)
    forger_optimizer = torch.optim.Adam(pair.forger.parameters(), opts.forger_rate, betas=(0.5, 0.99), fused=True)
    journal = Journal(pair, opts.every, opts.verbose)

    began = time.perf_counter()
    for step in range(1, opts.updates + 1):
        windows = next(real)
        fakes = pair.forge(len(windows))

        judged = softplus(-pair.judge(windows)).mean() + softplus(pair.judge(fakes.detach())).mean()
        judge_optimizer.zero_grad()
        judged.backward()
        judge_optimizer.step()

        pair.judge.requires_grad_(False)
        forged = softplus(-pair.judge(fakes)).mean()
        forger_optimizer.zero_grad()
        forged.backward()
        forger_optimizer.step()
        pair.judge.requires_grad_(True)

        journal.update(step, judged.detach(), forged.detach())
    total = judged.item() + forged.item()
    print(f"{step} steps in {time.perf_counter() - began:.2f} s, loss {total:.6f}")


if __name__ == "__main__":
    main()
