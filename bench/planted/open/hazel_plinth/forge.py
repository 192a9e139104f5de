"""Two networks: one draws guilloché lines, one tells them from printed ones."""

import json
import os
import time
from pathlib import Path

import torch

from nets import draw_loss, judge_loss, tower
from prints import pen


def update(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


def forge(conf):
    fit = conf["fit"]
    torch.manual_seed(fit["seed"])
    torch.set_num_threads(1)
    size = conf["draw"].pop("seed_size")
    printed = pen(g=torch.Generator().manual_seed(fit["seed"]), **conf["print"])
    ends = 2 * conf["print"]["points"]
    hand, judge = tower(size, ends, **conf["draw"]), tower(ends, 1, **conf["judge"])
    hand_opt = torch.optim.Adam(hand.parameters(), fit["lr"], betas=(0.0, 0.99), fused=True)
    judge_opt = torch.optim.Adam(judge.parameters(), fit["lr"], betas=(0.0, 0.99), fused=True)
    steps = int(os.environ.get("PLANTED_STEPS", fit["steps"]))
    began = time.perf_counter()
    for n in range(1, steps + 1):
        with torch.no_grad():
            fake = hand(torch.randn(fit["batch"], size))
        judged = update(judge_opt, judge_loss(judge, printed(fit["batch"]), fake, fit["r1"]))
        judge.requires_grad_(False)
        drawn = update(hand_opt, draw_loss(judge, hand(torch.randn(fit["batch"], size))))
        judge.requires_grad_(True)
        if n % fit["say"] == 0:
            print(f"{n:5d} judge {judged:.3f} hand {drawn:.3f}", flush=True)
    took = time.perf_counter() - began
    print(f"{steps} steps in {took:.3f} s, loss {judged + drawn:.5f}")


if __name__ == "__main__":
    forge(json.loads(Path("guilloche.json").read_text()))
