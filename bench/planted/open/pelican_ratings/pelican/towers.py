import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, count, features, width, hidden):
        super().__init__()
        self.table = nn.Embedding(count, width, sparse=False)
        self.mix = nn.Sequential(
            nn.Linear(width + features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, width)
        )

    def forward(self, ids, features):
        return F.normalize(self.mix(torch.cat([self.table(ids), features[ids]], 1)), dim=-1)


class TwoTowers(nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.users = Tower(config.users, data.user_features.shape[1], config.width, config.hidden)
        self.items = Tower(config.items, data.item_features.shape[1], config.width, config.hidden)
        self.register_buffer("user_features", data.user_features)
        self.register_buffer("item_features", data.item_features)
        self.temperature = nn.Parameter(torch.tensor(2.3))

    def loss(self, users, items):
        left = self.users(users, self.user_features)
        right = self.items(items, self.item_features)
        logits = left @ right.T * self.temperature.exp()
        clash = (items[:, None] == items[None]) & ~torch.eye(len(items), dtype=torch.bool)
        logits = logits.masked_fill(clash, -1e4)
        return F.cross_entropy(logits, torch.arange(len(items)))
