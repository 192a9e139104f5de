"""Examples → tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ferry.data.datasets import Example
from ferry.data.vocabulary import PADDING


@dataclass
class Batch:
    """`tokens` (B, L) int64 padded with 0; `mask` (B, L) true where a word is; `queue` (B,), `urgency` (B,), `index` (B,)."""

    tokens: torch.Tensor
    mask: torch.Tensor
    queue: torch.Tensor
    urgency: torch.Tensor
    index: torch.Tensor

    def __len__(self) -> int:
        return int(self.queue.shape[0])

    def pin_memory(self) -> Batch:
        return Batch(*(getattr(self, name).pin_memory() for name in ("tokens", "mask", "queue", "urgency", "index")))


class Collate:
    """Pads the examples of a batch to one length."""

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    def __call__(self, examples: list[Example]) -> Batch:
        length = max(len(example.tokens) for example in examples)
        tokens = torch.full((len(examples), length), PADDING, dtype=torch.long)
        for row, example in enumerate(examples):
            tokens[row, : len(example.tokens)] = torch.tensor(example.tokens)
        return Batch(
            tokens=tokens,
            mask=tokens != PADDING,
            queue=torch.tensor([example.queue for example in examples]),
            urgency=torch.tensor([example.urgency for example in examples], dtype=torch.float32),
            index=torch.tensor([example.index for example in examples]),
        )
