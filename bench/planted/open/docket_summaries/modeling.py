"""A transformer that classifies docket entries."""

import torch
from torch import nn


class DocketClassifier(nn.Module):
    def __init__(self, vocabulary: int, matters: int, positions: int, width: int, heads: int, layers: int, feedforward: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.places = nn.Parameter(torch.randn(positions, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, feedforward, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, matters)

    def forward(self, tokens: torch.Tensor, padding: torch.Tensor, matter: torch.Tensor | None = None):
        x = self.words(tokens) + self.places[: tokens.shape[1]]
        x = self.encoder(x, src_key_padding_mask=padding)
        kept = (~padding).float()[:, :, None]
        scores = self.head((x * kept).sum(1) / kept.sum(1))
        loss = None if matter is None else nn.functional.cross_entropy(scores, matter)
        return scores, loss
