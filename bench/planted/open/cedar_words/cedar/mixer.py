from torch import nn


class TimeMix(nn.Module):
    def __init__(self, width, kernel=5):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.deep = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.act = nn.GELU()

    def forward(self, h):
        mixed = self.deep(self.norm(h).transpose(1, 2)).transpose(1, 2)
        return h + self.down(self.act(self.up(mixed)))


class KeywordNet(nn.Module):
    def __init__(self, bands=32, width=64, depth=5, words=10):
        super().__init__()
        self.inp = nn.Linear(bands, width)
        self.blocks = nn.Sequential(*[TimeMix(width) for _ in range(depth)])
        self.out = nn.Linear(width, words)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x)).mean(1))
