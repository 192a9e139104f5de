"""From rows of numbers to a batch."""

import os
from collections.abc import Callable

import torch
from messages import PAD

FIXED = os.environ.get("PLANTED_FIX") == "1"


def in_blocks_of(block: int) -> Callable[[int], int]:
    """Widths that are multiples of a block, so that there are few different shapes."""

    def width(longest: int) -> int:
        return -(-longest // block) * block

    return width


def collator(limit: int) -> Callable[[list[dict]], dict[str, torch.Tensor]]:
    """A function that joins rows; rows longer than the limit lose their end."""
    if FIXED:
        fit = in_blocks_of(8)
    else:
        fit = in_blocks_of(160)

    def join(rows: list[dict]) -> dict[str, torch.Tensor]:
        kept = [row["input_ids"][:limit] for row in rows]
        width = fit(max(map(len, kept)))
        ids = torch.full((len(rows), width), PAD)
        for line, numbers in zip(ids, kept):
            line[: len(numbers)] = torch.tensor(numbers)
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([row["label"] for row in rows])}

    return join
