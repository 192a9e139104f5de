from torch import nn
from torch.nn.functional import normalize


class PrintEmbedder(nn.Module):
    def __init__(self, size, hidden, out):
        super().__init__()
        self.first = nn.Linear(size, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.second = nn.Linear(hidden, out)

    def forward(self, outlines):
        return normalize(self.second(self.norm(self.first(outlines)).relu()), dim=1)
