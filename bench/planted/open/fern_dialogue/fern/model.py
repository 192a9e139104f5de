import torch
from torch import nn


class IntentModel(nn.Module):
    def __init__(self, vocabulary, intents, width=128, layers=2, heads=4, positions=160):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Embedding(positions, width)
        block = nn.TransformerEncoderLayer(width, heads, 3 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.intent = nn.Linear(width, intents)

    def forward(self, ids, mask, labels):
        h = self.words(ids) + self.positions(torch.arange(ids.shape[1]))
        h = self.encoder(h, src_key_padding_mask=~mask)
        seen = mask.unsqueeze(-1).to(h.dtype)
        logits = self.intent((h * seen).sum(1) / seen.sum(1))
        return nn.functional.cross_entropy(logits, labels), logits
