import torch.nn.functional as F
from torch import nn


class EmbeddingNet(nn.Module):
    def __init__(self, width, embed_dim):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1, bias=False),
            nn.BatchNorm2d(4 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(3),
        )
        self.project = nn.Linear(4 * width * 9, embed_dim)

    def forward(self, x):
        return F.normalize(self.project(self.features(x).flatten(1)), dim=1)
