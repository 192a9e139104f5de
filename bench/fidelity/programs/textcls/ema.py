"""Exponential moving average of the weights."""

import copy

import torch


class Ema:
    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.model = copy.deepcopy(model).eval()
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for average, p in zip(self.model.parameters(), model.parameters()):
            average.mul_(self.decay).add_(p, alpha=1 - self.decay)
