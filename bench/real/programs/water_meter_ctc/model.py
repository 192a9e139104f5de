import torch
from torch import nn


def block(inp, out, pool):
    return nn.Sequential(nn.Conv2d(inp, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(pool))


class CRNN(nn.Module):
    def __init__(self, classes, hidden=96):
        super().__init__()
        self.cnn = nn.Sequential(block(1, 24, 2), block(24, 48, 2), block(48, 64, (2, 1)), block(64, 96, (4, 1)))
        self.rnn = nn.LSTM(96, hidden, num_layers=1, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, images):
        features = self.cnn(images).squeeze(2).transpose(1, 2)  # (batch, width / 4, channels)
        states, _ = self.rnn(features)
        return self.head(states).log_softmax(-1)
