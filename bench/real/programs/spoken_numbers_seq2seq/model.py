"""Transformer for sequences of characters, from torch.nn's parts."""
import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, dim, dropout, length=256):
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(1, length, dim)
        table[0, :, 0::2] = torch.sin(position * rate)
        table[0, :, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(x + self.table[:, :x.size(1)])


class Seq2Seq(nn.Module):
    def __init__(self, vocab, pad, bos, eos, dim=128, heads=4, layers=2, ff=384, dropout=0.1):
        super().__init__()
        self.pad, self.bos, self.eos, self.scale = pad, bos, eos, math.sqrt(dim)
        self.embed = nn.Embedding(vocab, dim, padding_idx=pad)
        nn.init.normal_(self.embed.weight, std=dim ** -0.5)
        self.position = PositionalEncoding(dim, dropout)
        self.transformer = nn.Transformer(dim, heads, layers, layers, ff, dropout, batch_first=True, norm_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, source, target):
        """Logits for the character after each one of `target`."""
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device).isinf()
        hidden = self.transformer(
            self.position(self.embed(source) * self.scale), self.position(self.embed(target) * self.scale),
            tgt_mask=causal, src_key_padding_mask=source == self.pad, memory_key_padding_mask=source == self.pad,
            tgt_key_padding_mask=target == self.pad, tgt_is_causal=False)
        return self.head(hidden)

    @torch.no_grad()
    def generate(self, source, max_new_tokens):
        """Greedy decoding of a batch."""
        output = torch.full((source.size(0), 1), self.bos, dtype=torch.long, device=source.device)
        finished = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
        for _ in range(max_new_tokens):
            logits = self(source, output)[:, -1]
            token = logits.argmax(-1).masked_fill(finished, self.pad)
            output = torch.cat([output, token.unsqueeze(1)], dim=1)
            finished |= token == self.eos
            if finished.all():
                break
        return output
