import torch
import torch.nn as nn
import torch.nn.functional as F

from questions import PASSAGE, QUESTION, VOCAB


class SpanReader(nn.Module):
    """A transformer encoder with two pointers."""

    def __init__(self, width: int = 64, heads: int = 4, depth: int = 3):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.place = nn.Embedding(QUESTION + 1 + PASSAGE, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.pointers = nn.Linear(width, 2)

    def forward(self, ids, begin, end):
        x = self.embed(ids) + self.place.weight
        scores = self.pointers(self.encoder(x))[:, QUESTION + 1 :]
        return F.cross_entropy(scores[..., 0], begin) + F.cross_entropy(scores[..., 1], end)
