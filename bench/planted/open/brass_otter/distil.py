import json
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from bells import NOTES, Foundry
from journal import open_journal


def tower(inputs, width, depth):
    layers, size = [], inputs
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.LayerNorm(width), nn.SiLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, NOTES))


def school(teacher, foundry, batch, lessons=50):
    rule = torch.optim.Adam(teacher.parameters(), 2e-3)
    for _ in range(lessons):
        x, note = foundry.cast(batch)
        rule.zero_grad()
        F.cross_entropy(teacher(x), note).backward()
        rule.step()
    return teacher.eval().requires_grad_(False)


def soft(student, teacher, t):
    return F.kl_div(F.log_softmax(student / t, -1), F.log_softmax(teacher / t, -1), reduction="batchmean", log_target=True) * t * t


def main():
    s = json.loads((Path(__file__).parent / "settings.json").read_text())
    torch.manual_seed(s["seed"])
    foundry = Foundry(s["partials"], s["seed"])
    size = 6 * s["partials"]
    teacher = school(tower(size, **s["teacher"]), foundry, s["batch"])
    student = tower(size, **s["student"])
    rule = torch.optim.AdamW(student.parameters(), s["lr"])
    log = open_journal(s["journal"], student)
    log.info("teacher is ready")
    steps, began = int(os.environ.get("PLANTED_STEPS", 1000)), time.time()
    for step in range(1, steps + 1):
        x, note = foundry.cast(s["batch"])
        with torch.no_grad():
            wanted = teacher(x)
        heard = student(x)
        loss = 0.7 * soft(heard, wanted, s["temperature"]) + 0.3 * F.cross_entropy(heard, note)
        rule.zero_grad()
        loss.backward()
        rule.step()
        now = loss.item()
        log.info("bell %d tuned, loss %.4f", step, now, extra={"step": step, "loss": now, "lr": s["lr"]})
    print(f"{steps} steps in {time.time() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
