import torch
from torch import nn


class Cantor(nn.Module):
    def __init__(self, notes: int, length: int, width: int = 96, layers: int = 3):
        super().__init__()
        self.note, self.place = nn.Embedding(notes, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, notes)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, ids):
        t = ids.shape[1]
        h = self.note(ids) + self.place.weight[:t]
        return self.out(self.body(h, mask=self.mask[:t, :t], is_causal=True))
