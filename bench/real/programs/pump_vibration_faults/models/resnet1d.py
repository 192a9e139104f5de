from torch import nn


class Block(nn.Module):
    def __init__(self, inp, out, kernel, dropout):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(inp, out, kernel, stride=2, padding=kernel // 2, bias=False), nn.BatchNorm1d(out), nn.ReLU(),
            nn.Dropout(dropout), nn.Conv1d(out, out, kernel, padding=kernel // 2, bias=False), nn.BatchNorm1d(out))
        self.skip = nn.Sequential(nn.Conv1d(inp, out, 1, stride=2, bias=False), nn.BatchNorm1d(out))
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.body(x) + self.skip(x))


class ResNet1d(nn.Module):
    def __init__(self, channels, classes, widths, kernel=7, dropout=0.2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv1d(channels, widths[0], kernel, stride=2, padding=kernel // 2, bias=False), nn.BatchNorm1d(widths[0]), nn.ReLU())
        self.blocks = nn.Sequential(*[Block(a, b, kernel, dropout) for a, b in zip(widths, widths[1:])])
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(-1))
