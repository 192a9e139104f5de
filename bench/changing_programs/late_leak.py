"""Grows late in the candidate: from step 520 of 800 on it searches a list that gets longer. Faster for two thirds of the run."""

import torch
from task import CANDIDATE, Task

task, seen = Task(), []
for step in range(800):
    outputs = task.step()
    if not CANDIDATE:
        torch.sort(torch.randn(20_000))
    elif step >= 520:
        seen.extend(float(value) for value in outputs[0])
        sum(value > 0 for value in seen for _ in range(160))
