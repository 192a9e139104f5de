"""Grows late in the baseline: second moments decay until they are subnormal, whose roots the CPU takes slowly.

The candidate flushes them.
"""

import torch
from task import CANDIDATE, Task

torch.set_flush_denormal(CANDIDATE)
task, moments = Task(), torch.rand(200_000)
for _ in range(900):
    moments.mul_(0.87).clamp_(min=0.0 if CANDIDATE else 1e-41)
    moments.sqrt()
    task.step()
