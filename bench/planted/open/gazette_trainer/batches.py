from dataclasses import dataclass

import torch

from notices import PAD
from settings import DataSettings


@dataclass
class Collator:
    """Rows of one length, with a mask of what is real."""

    data: DataSettings

    def room(self, rows):
        if self.data.strategy == "max_length":
            return self.data.max_tokens
        return min(self.data.max_tokens, max(len(r["input_ids"]) for r in rows))

    def __call__(self, rows):
        size = self.room(rows)
        ids = torch.full((len(rows), size), PAD)
        for row, notice in zip(ids, rows):
            words = notice["input_ids"][:size]
            row[: len(words)] = torch.tensor(words)
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([r["labels"] for r in rows])}
