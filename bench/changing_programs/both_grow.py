"""Grows in both, at the same factor: all scores are kept and sorted; the candidate sorts once instead of twice and has half of the rest."""

import torch
from task import CANDIDATE, Task

task, scores = Task(), []
for _ in range(600):
    scores.append(task.step().flatten()[::6])
    everything = torch.cat(scores)
    for _ in range(2 if CANDIDATE else 3):
        torch.sort(everything)
        torch.sort(torch.randn(6_000))
