import torch
import torch.nn as nn


class TicketClassifier(nn.Module):
    def __init__(self, n_tokens, cfg):
        super().__init__()
        dim = cfg["dim"]
        self.tokens = nn.Embedding(n_tokens + 2, dim, padding_idx=0)
        self.positions = nn.Embedding(cfg["max_len"], dim)
        layer = nn.TransformerEncoderLayer(dim, cfg["heads"], dim * 4, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, cfg["layers"], enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, cfg["n_queues"])

    def forward(self, input_ids, mask):
        pos = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.tokens(input_ids) + self.positions(pos)
        x = self.norm(self.encoder(x, src_key_padding_mask=~mask))
        m = mask.unsqueeze(-1).float()
        pooled = (x * m).sum(1) / m.sum(1)
        return self.head(pooled)
