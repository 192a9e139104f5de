import torch
from torch import nn


class NeuMF(nn.Module):
    """Neural matrix factorization (He et al. 2017), GMF and MLP branches."""

    def __init__(self, num_users, num_items, dim, hidden):
        super().__init__()
        self.user_gmf = nn.Embedding(num_users, dim)
        self.item_gmf = nn.Embedding(num_items, dim)
        self.user_mlp = nn.Embedding(num_users, dim)
        self.item_mlp = nn.Embedding(num_items, dim)
        layers, width = [], 2 * dim
        for h in hidden:
            layers += [nn.Linear(width, h), nn.ReLU()]
            width = h
        self.mlp = nn.Sequential(*layers)
        self.out = nn.Linear(dim + width, 1)
        for emb in (self.user_gmf, self.item_gmf, self.user_mlp, self.item_mlp):
            nn.init.normal_(emb.weight, std=0.05)

    def forward(self, users, items):
        gmf = self.user_gmf(users) * self.item_gmf(items)
        mlp = self.mlp(torch.cat([self.user_mlp(users), self.item_mlp(items)], dim=1))
        return self.out(torch.cat([gmf, mlp], dim=1)).squeeze(1)
