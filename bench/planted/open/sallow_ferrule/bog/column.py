"""A peat column: a network reads the site, physics moves the water."""

import os

import torch
from torch import nn


class Traits(nn.Module):
    """From a site's features to conductivity, field capacity, root share and first content of each layer."""

    def __init__(self, cfg):
        super().__init__()
        self.layers = cfg.soil.layers
        self.body = nn.Sequential(nn.Linear(cfg.features, cfg.width), nn.SiLU(), nn.Linear(cfg.width, cfg.width), nn.SiLU())
        self.head = nn.Linear(cfg.width, 4 * self.layers)

    def forward(self, site):
        k, hold, roots, start = self.head(self.body(site)).view(-1, 4, self.layers).unbind(1)
        return 0.5 * torch.sigmoid(k), 0.3 * torch.sigmoid(hold), torch.softmax(roots, 1), 0.5 * torch.sigmoid(start)


class Column(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.soil = cfg.soil
        self.traits = Traits(cfg)
        self.scale = nn.Parameter(torch.ones(()))
        self.datum = nn.Parameter(torch.zeros(()))
        self.day = self.balance if os.environ.get("PLANTED_FIX") == "1" else self.percolate

    def forward(self, site, rain, sun):
        k, hold, roots, water = self.traits(site)
        table = []
        for d in range(self.soil.days):
            water = self.day(water, rain[:, d], sun[:, d], k, hold, roots)
            table.append(water.sum(1))
        return self.datum + self.scale * torch.stack(table, 1)

    def percolate(self, water, rain, sun, k, hold, roots):
        after, arriving = [], rain
        for i in range(self.soil.layers):
            content = water[:, i]
            sinking = k[:, i] * torch.relu(content - hold[:, i])
            drunk = sun * roots[:, i] * torch.tanh(content)
            after.append(content + arriving - sinking - drunk)
            arriving = sinking
        return torch.stack(after, 1)

    def balance(self, water, rain, sun, k, hold, roots):
        sinking = k * torch.relu(water - hold)
        arriving = torch.cat([rain[:, None], sinking[:, :-1]], 1)
        return water + arriving - sinking - sun[:, None] * roots * torch.tanh(water)
