from torch import nn


class VisitModel(nn.Module):
    def __init__(self, codes, width=128, hidden=1024):
        super().__init__()
        self.codes = nn.EmbeddingBag(codes, width, mode="mean")
        self.body = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, x):
        return self.body(self.codes(x))
