"""A young ringer learns from the rows and from a smaller, old one that has learnt for a while."""

import os
import time
import tomllib
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from ringer import Lion, Ringer
from ringing import Tower, quarters


def lesson(young, old, rung, soft):
    calls = young(rung[:, :-1]).flatten(0, 1)
    loss = cross_entropy(calls, rung[:, 1:].flatten())
    if old is not None:
        with torch.no_grad():
            opinion = log_softmax(old(rung[:, :-1]).flatten(0, 1), 1)
        loss = loss + soft * kl_div(log_softmax(calls, 1), opinion, reduction="batchmean", log_target=True)
    return loss


def learn(ringer, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def listen(ringer, rung):
    ringer.eval()
    right = (ringer(rung[:, :-1]).argmax(2) == rung[:, 1:]).float().mean()
    ringer.train()
    return right.item()


def main():
    plan = tomllib.loads(Path("tower.toml").read_text())
    often = plan["often"]
    torch.manual_seed(plan["seed"])
    length = plan["bells"] * plan["rows"]
    tower = Tower(plan["bells"], plan["rows"], plan["seed"])
    lessons = quarters(tower, plan["peals"], plan["batch"], plan["quarter"])
    unheard = tower.peals(64)
    old = Ringer(plan["bells"], length, 32, 1, 2)
    elder = Lion(old.parameters(), 1e-3)
    for _ in range(60):
        learn(old, elder, lesson(old, None, next(lessons), 0.0))
    young = Ringer(plan["bells"], length, plan["width"], plan["layers"], plan["heads"])
    optimizer = Lion(young.parameters(), plan["rate"])
    steps = int(os.environ.get("PLANTED_STEPS", 400))
    began, mean = time.perf_counter(), None
    for step in range(1, steps + 1):
        loss = lesson(young, old, next(lessons), plan["soft"])
        learn(young, optimizer, loss)
        now = loss.item()
        mean = now if mean is None else 0.95 * mean + 0.05 * now
        if step % often["say"] == 0:
            print(f"{step}: {mean:.4f}", flush=True)
        if step % often["listen"] == 0:
            print(f"{step}: {listen(young, unheard):.1%} of unheard calls right", flush=True)
        if step % often["keep"] == 0:
            torch.save({"young": young.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "young.pt")
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {mean:.5f}")


if __name__ == "__main__":
    main()
