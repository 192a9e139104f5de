"""Stairs in both: each epoch's texts are longer. The candidate makes the pairs of positions in one go instead of row by row."""

import torch
from task import CANDIDATE, Task

task = Task()
for step in range(800):
    length = 60 * (1 + step // 200)
    positions = torch.arange(length)
    rows = positions[:, None] - positions if CANDIDATE else torch.stack([positions[row] - positions for row in range(length)])
    task.step(task.inputs + rows.float().mean())
