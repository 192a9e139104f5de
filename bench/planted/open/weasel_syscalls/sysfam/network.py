import math

import torch
from torch import nn

from .traces import PAD


def sinusoids(length, width):
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class FamilyNet(nn.Module):
    def __init__(self, calls, families, width, layers, heads, feedforward, room=512):
        super().__init__()
        self.embed = nn.Embedding(calls + 1, width, padding_idx=PAD)
        self.register_buffer("place", sinusoids(room, width), persistent=False)
        layer = nn.TransformerEncoderLayer(width, heads, feedforward, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, families))

    def forward(self, tokens):
        ignore = tokens == PAD
        h = self.embed(tokens) + self.place[: tokens.shape[1]]
        h = self.encoder(h, src_key_padding_mask=ignore)
        keep = (~ignore).unsqueeze(2).to(h.dtype)
        return self.out((h * keep).sum(1) / keep.sum(1))
