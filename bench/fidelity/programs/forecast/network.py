"""A recurrent forecaster."""

import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, hidden, layers, horizon, dropout):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, num_layers=layers, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, horizon))

    def forward(self, history):
        states, _ = self.rnn(history)
        return self.head(self.norm(states[:, -1]))
