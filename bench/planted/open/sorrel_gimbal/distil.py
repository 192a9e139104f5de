"""A large listener teaches a small one that fits into the tuner's pocket device."""

import os
import time

import torch
from torch import nn
from torch.nn import functional as F

import bench
from reeds import FAULTS, PARTIALS, notes, portions

BATCH, SCHOOL = 448, 25


def listener(width, depth):
    sizes = [PARTIALS] + [width] * depth
    hidden = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.GELU())]
    return nn.Sequential(*hidden, nn.Linear(width, FAULTS))


def school(teacher, sound, fault):
    """The master has heard many reeds; here a short course must do."""
    adam = torch.optim.Adam(teacher.parameters(), 2e-3)
    for rows, _ in zip(portions(len(sound), 256, seed=1), range(SCHOOL)):
        adam.zero_grad()
        F.cross_entropy(teacher(sound[rows]), fault[rows]).backward()
        adam.step()
    return teacher.eval().requires_grad_(False)


def lesson(teacher, pupil, sound, fault, heat, hard):
    with torch.no_grad():
        goal = F.log_softmax(teacher(sound) / heat, -1)
    said = pupil(sound)
    soft = F.kl_div(F.log_softmax(said / heat, -1), goal, log_target=True, reduction="batchmean") * heat**2
    return (1 - hard) * soft + hard * F.cross_entropy(said, fault)


def main():
    ini = bench.read()
    print(bench.settle(ini, seed=31))
    want = ini["pupil"]
    sound, fault = notes(14000, seed=4)
    teacher = school(listener(256, 3), sound, fault)
    pupil = listener(want.getint("width"), 4)
    adam = torch.optim.AdamW(pupil.parameters(), want.getfloat("lr"), weight_decay=0.02)
    heat, hard = want.getfloat("heat"), want.getfloat("hard")
    steps = int(os.environ.get("PLANTED_STEPS", 900))
    began = time.perf_counter()
    for step, rows in zip(range(1, steps + 1), portions(len(sound), BATCH, seed=2)):
        loss = lesson(teacher, pupil, sound[rows], fault[rows], heat, hard)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 200 == 0:
            print(f"lesson {step}: {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


main()
