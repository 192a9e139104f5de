"""Distils the old master's reading of the waggle dance into a narrow student."""

import json
import os
import time

import torch
from torch.nn import functional as F

from dance import HEADINGS, old_master, windows
from habits import Slumber, quicken
from student import Student


def lesson(student, signal, master, heading, warmth):
    answer = student(signal)
    soft = F.kl_div(F.log_softmax(answer / warmth, -1), F.log_softmax(master / warmth, -1), reduction="batchmean", log_target=True)
    return 0.7 * warmth**2 * soft + 0.3 * F.cross_entropy(answer, heading)


def main():
    with open("hive.json") as file:
        hive = json.load(file)
    torch.manual_seed(hive["seed"])
    signal, heading = windows(hive["windows"], hive["samples"], hive["seed"])
    master = old_master(signal, heading)
    student = Student(signal.shape[1], hive["width"], hive["depth"], HEADINGS)
    slumber = Slumber(student, hive["survival"], hive["seed"])
    student = quicken(student, **hive["compile"])
    optimizer = torch.optim.RAdam(student.parameters(), lr=hive["lr"])

    steps = int(os.environ.get("PLANTED_STEPS", 240))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        rows = torch.randint(len(signal), (hive["batch"],))
        slumber.before_step()
        loss = lesson(student, signal[rows], master[rows], heading[rows], hive["warmth"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"lesson {step}: {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
