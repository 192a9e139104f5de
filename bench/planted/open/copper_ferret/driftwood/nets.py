import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, ids, dense, dim):
        super().__init__()
        self.emb = nn.Embedding(ids, dim)
        self.mlp = nn.Sequential(nn.Linear(dim + dense, 160), nn.ReLU(), nn.LayerNorm(160), nn.Linear(160, dim))

    def forward(self, ids, dense):
        return self.mlp(torch.cat([self.emb(ids), dense], -1))


class TwoTower(nn.Module):
    def __init__(self, users, items, user_dense, item_dense, dim=64):
        super().__init__()
        self.user = Tower(users, user_dense, dim)
        self.item = Tower(items, item_dense, dim)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, batch):
        u = self.user(batch["user"], batch["user_x"])
        i = self.item(batch["item"], batch["item_x"])
        return (u * i).sum(-1) / u.shape[-1] ** 0.5 + self.bias
