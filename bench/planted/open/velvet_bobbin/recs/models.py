import torch
from torch import nn

from . import register


def mlp(a, b, c):
    return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.LayerNorm(b), nn.Linear(b, b), nn.ReLU(), nn.Linear(b, c))


@register("model", "two_tower")
class TwoTower(nn.Module):
    def __init__(self, dim, hidden, users, items):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.user_tower = mlp(2 * dim, hidden, dim)
        self.item_tower = mlp(dim, hidden, dim)

    def tables(self):
        return [self.user.weight, self.item.weight]

    def dense(self):
        return [*self.user_tower.parameters(), *self.item_tower.parameters()]

    def forward(self, batch):
        past = self.item(batch["history"]).mean(1)
        who = self.user_tower(torch.cat([self.user(batch["user"]), past], -1))
        what = self.item_tower(self.item(batch["items"]))
        who = nn.functional.normalize(who, dim=-1)
        what = nn.functional.normalize(what, dim=-1)
        return torch.einsum("bd,bkd->bk", who, what)


@register("loss", "sampled_softmax")
class SampledSoftmax(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores):
        first = torch.zeros(len(scores), dtype=torch.long)
        return nn.functional.cross_entropy(scores / self.temperature, first)


@register("loss", "bpr")
class BPR(nn.Module):
    def forward(self, scores):
        return -nn.functional.logsigmoid(scores[:, :1] - scores[:, 1:]).mean()
