"""Distils the institute's ripeness model into one that fits into the handheld probe of the cellar master."""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from bundle import unpack
from wheels import measure


def probe(stages, width=24):
    return nn.Sequential(
        nn.Unflatten(1, (1, -1)),
        nn.Conv1d(1, width, 9, stride=2, padding=4), nn.GELU(),
        nn.Conv1d(width, width * 2, 7, stride=2, padding=3), nn.GELU(),
        nn.Conv1d(width * 2, width * 2, 5, stride=2, padding=2), nn.GELU(),
        nn.AdaptiveAvgPool1d(8), nn.Flatten(),
        nn.Linear(width * 16, 64), nn.GELU(), nn.Linear(64, stages),
    )  # fmt: skip


def softened(student, teacher, heat):
    return F.kl_div(F.log_softmax(student / heat, 1), F.log_softmax(teacher / heat, 1), log_target=True, reduction="batchmean") * heat**2


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--bundle", default="teacher")
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 220)))
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--heat", type=float, default=2.5)
    p.add_argument("--hard", type=float, default=0.2, help="weight of the true label")
    return p.parse_args()


def main():
    args = arguments()
    torch.manual_seed(17)
    card = json.loads((Path(args.bundle) / "card.json").read_text())
    spectra, stage = measure(4096, card, seed=1)
    teacher, card = unpack(args.bundle, lambda: measure(3000, card, seed=2))
    student = probe(len(card["stages"]))
    optimizer = torch.optim.AdamW(student.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=max(2000, args.steps + 1))
    picker = torch.Generator().manual_seed(3)

    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(spectra), (args.batch,), generator=picker)
        x = spectra[rows] * (1 + 0.03 * torch.randn(args.batch, 1, generator=picker))
        with torch.no_grad():
            opinion = teacher(x)
        answer = student(x)
        loss = softened(answer, opinion, args.heat) + args.hard * F.cross_entropy(answer, stage[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            right = (answer.argmax(1) == stage[rows]).float().mean()
            print(f"step {step:5d}  loss {loss:.4f}  right {right:.2f}", flush=True)
    print(f"{args.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
