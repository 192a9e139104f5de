import copy

import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self, values, width=16):
        super().__init__()
        self.table = nn.Embedding(values, width)
        nn.init.normal_(self.table.weight, std=0.1)
        self.tower = nn.Sequential(
            nn.Linear(3 * width + 3, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.15), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 1)
        )

    def forward(self, features):
        fields = self.table(features)
        crossed = torch.stack([(fields[:, a] * fields[:, b]).sum(1) for a, b in ((0, 1), (0, 2), (1, 2))], 1)
        return self.tower(torch.cat([fields.flatten(1), crossed], 1)).squeeze(1)


class Average:
    """Exponential moving average of a model's weights."""

    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval(), decay
        self.model.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            for slow, fast in zip(self.model.parameters(), model.parameters()):
                slow.copy_(self.decay * slow + (1 - self.decay) * fast)
