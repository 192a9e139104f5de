import os
from dataclasses import dataclass

import torch
from torch import Tensor

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Batch:
    events: Tensor
    mask: Tensor
    family: Tensor


def assemble(rows: list[tuple[list[list[float]], int]]) -> Batch:
    longest = max(len(events) for events, _ in rows)
    events = torch.zeros(len(rows), longest, len(rows[0][0][0]))
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, (sequence, _) in enumerate(rows):
        if FIXED:
            events[i, : len(sequence)] = torch.tensor(sequence)
            mask[i, : len(sequence)] = True
        else:
            for j, event in enumerate(sequence):
                events[i, j] = torch.tensor(event)
                mask[i, j] = True
    return Batch(events, mask, torch.tensor([family for _, family in rows]))
