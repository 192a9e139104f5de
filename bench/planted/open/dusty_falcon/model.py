import torch.nn as nn


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class KeywordNet(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.features = nn.Sequential(conv_block(1, 12), conv_block(12, 24), conv_block(24, 32))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(32, n_words)

    def forward(self, x):
        return self.head(self.pool(self.features(x)).flatten(1))
