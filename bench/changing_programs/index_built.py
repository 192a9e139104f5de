"""Grows in the baseline, falls in the candidate: it builds an index first, where the baseline searches a list that gets longer."""

import torch
from task import CANDIDATE, Task

task, names, index = Task(), [], {}
for step in range(800):
    names.append(f"sample {step}")
    if CANDIDATE:
        index[names[-1]] = step
        if step < 200:
            torch.sort(torch.randn(24_000))
        index["sample 0"]
    else:
        [name for name in names for _ in range(250) if name == "sample 0"]
    task.step()
