"""Batches for the table encoder: token ids, mask, and the relation of each pair of tokens."""

import os
from dataclasses import dataclass

import torch

FIX = os.environ.get("PLANTED_FIX") == "1"
NEAR = 7


def relation(i: int, j: int, fields: list) -> int:
    """0..14: distance within a field; 15: another field; 16: padding."""
    if i >= len(fields) or j >= len(fields):
        return 16
    if fields[i] != fields[j]:
        return 15
    return max(-NEAR, min(NEAR, j - i)) + NEAR


@dataclass
class TableCollator:
    pad_id: int = 0

    def __call__(self, features: list) -> dict:
        width = max(len(f["tokens"]) for f in features)
        ids = torch.tensor([f["tokens"] + [self.pad_id] * (width - len(f["tokens"])) for f in features])
        if FIX:
            fields = torch.tensor([f["fields"] + [-1] * (width - len(f["fields"])) for f in features])
            place = torch.arange(width)
            near = (place[None, :] - place[:, None]).clamp(-NEAR, NEAR) + NEAR
            one, other = fields[:, :, None], fields[:, None, :]
            relations = torch.where(one == other, near[None], 15)
            relations = torch.where((one < 0) | (other < 0), 16, relations)
        else:
            relations = torch.tensor([[[relation(i, j, f["fields"]) for j in range(width)] for i in range(width)] for f in features])
        return {
            "input_ids": ids,
            "attention_mask": (ids != self.pad_id).long(),
            "relations": relations,
            "labels": torch.tensor([f["stars"] for f in features]),
        }
