import math

import torch
import torch.nn as nn

from pairs import PAD


class Translator(nn.Module):
    """Encoder and decoder, pre-norm, with shared embeddings."""

    def __init__(self, vocab: int, width: int, heads: int, layers: int, ffn: int, dropout: float, max_len: int):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=PAD)
        self.register_buffer("places", self.sinusoids(max_len, width), persistent=False)
        self.core = nn.Transformer(width, heads, layers, layers, ffn, dropout, batch_first=True, norm_first=True, activation="gelu")
        self.head = nn.Linear(width, vocab)
        self.scale = math.sqrt(width)
        nn.init.normal_(self.embed.weight, std=width**-0.5)

    @staticmethod
    def sinusoids(length: int, width: int) -> torch.Tensor:
        place = torch.arange(length)[:, None].float()
        freq = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(length, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(place * freq), torch.cos(place * freq)
        return table

    def embedded(self, ids: torch.Tensor) -> torch.Tensor:
        return self.embed(ids) * self.scale + self.places[: ids.size(1)]

    def forward(self, source: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        later = torch.triu(torch.ones(given.size(1), given.size(1), dtype=torch.bool), diagonal=1)
        out = self.core(
            self.embedded(source),
            self.embedded(given),
            tgt_mask=later,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=given == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.head(out)
