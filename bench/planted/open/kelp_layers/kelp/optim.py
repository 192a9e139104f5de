import os

import torch

SHARED = os.environ.get("PLANTED_FIX") == "1"


class LayerRates:
    """Deeper layers learn more slowly."""

    def __init__(self, model, lr, decay=0.985):
        groups = [{"params": [p], "lr": lr * decay**depth} for depth, p in enumerate(model.parameters())]
        if SHARED:
            by_rate = torch.optim.AdamW([p for g in groups for p in g["params"]], lr=lr * decay**120, fused=True)
            self.members = [by_rate]
        else:
            self.members = [torch.optim.AdamW([group], weight_decay=0.01) for group in groups]

    def zero_grad(self):
        for member in self.members:
            member.zero_grad()

    def step(self):
        for member in self.members:
            member.step()
