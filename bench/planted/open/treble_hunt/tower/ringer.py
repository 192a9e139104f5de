import os

import torch
from torch import nn


class Ear(nn.Module):
    """Listens to all blows so far."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.calm = nn.LayerNorm(width)
        self.listen = nn.MultiheadAttention(width, heads, batch_first=True)
        self.register_buffer("ahead", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, blows):
        calm = self.calm(blows)
        if os.environ.get("PLANTED_FIX") == "1":
            heard, _ = self.listen(calm, calm, calm, attn_mask=self.ahead, need_weights=False, is_causal=True)
        else:
            heard, _ = self.listen(calm, calm, calm, attn_mask=self.ahead)
        return blows + heard

    def focus(self, blows):
        calm = self.calm(blows)
        _, focus = self.listen(calm, calm, calm, attn_mask=self.ahead, need_weights=True)
        return focus


class Hand(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, blows):
        return blows + super().forward(blows)


class Ringer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bell = nn.Embedding(config.bells, config.width)
        self.place = nn.Parameter(torch.randn(config.length, config.width) * 0.02)
        self.lateness = nn.Linear(1, config.width)
        self.ears = nn.ModuleList(Ear(config.width, config.heads, config.length) for _ in range(config.depth))
        self.hands = nn.ModuleList(Hand(config.width) for _ in range(config.depth))
        self.call = nn.Linear(config.width, config.bells)

    def enter(self, bells, late):
        return self.bell(bells) + self.place + self.lateness(late[..., None])

    def forward(self, bells, late):
        blows = self.enter(bells, late)
        for ear, hand in zip(self.ears, self.hands):
            blows = hand(ear(blows))
        return self.call(blows)

    @torch.no_grad()
    def reach(self, bells, late):
        """How many blows back the first ear looks, in the mean."""
        focus = self.ears[0].focus(self.enter(bells, late))
        back = torch.arange(focus.shape[-1])
        return (focus * (back[:, None] - back)).sum(-1).mean().item()
