"""Grows in the baseline: a running metric sorts all scores since the start; the candidate resets it every 100 steps."""

import torch
from task import CANDIDATE, Task

task, scores = Task(), []
for step in range(700):
    if CANDIDATE and step % 100 == 0:
        scores.clear()
    scores.append(task.step().flatten())
    torch.sort(torch.cat(scores)[::8]).values.mean()
