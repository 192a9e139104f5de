from torch import nn


class Relations(nn.Module):
    """Set transformer: which object would fall first?"""

    def __init__(self, fields, width=48, heads=4, depth=2):
        super().__init__()
        self.lift = nn.Linear(fields, width)
        self.attend = nn.ModuleList(nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(depth))
        self.think = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(depth))
        self.fall = nn.Linear(width, 1)

    def forward(self, objects, present):
        h = self.lift(objects)
        for attend, think in zip(self.attend, self.think):
            h = h + attend(h, h, h, key_padding_mask=~present, need_weights=False)[0]
            h = h + think(h)
        return self.fall(h).squeeze(-1).masked_fill(~present, -1e9)
