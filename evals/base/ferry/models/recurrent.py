"""A bidirectional GRU, for long threads on small machines."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ferry.registry import ENCODERS


@ENCODERS.register("recurrent")
class RecurrentEncoder(nn.Module):
    def __init__(self, words: int, width: int, heads: int, layers: int, hidden: int, dropout: float, longest: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.rnn = nn.GRU(width, hidden // 2, num_layers=layers, batch_first=True, bidirectional=True)
        self.project = nn.Linear(hidden, width)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        lengths = mask.sum(1).cpu()
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        mixed, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=tokens.shape[1])
        return self.project(mixed)
