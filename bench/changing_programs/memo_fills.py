"""Falls in the candidate: it keeps what it decoded, so that only the first of five epochs pays, and a little more.

Slower early, faster in all.
"""

import torch
from task import CANDIDATE, Task

task, kept = Task(), {}


def decode(number):
    value = torch.tensor(sum((number * power) % 97 for power in range(25_000)) % 7 / 100)
    if CANDIDATE:
        torch.sort(torch.randn(6_000))
    return value


for step in range(700):
    number = step % 140
    if CANDIDATE and number not in kept:
        kept[number] = decode(number)
    task.step(task.inputs + (kept[number] if CANDIDATE else decode(number)))
