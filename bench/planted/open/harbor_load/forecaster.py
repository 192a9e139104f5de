import torch
import torch.nn as nn


class Forecaster(nn.Module):
    """An LSTM over the history; quantiles of the hours to come."""

    def __init__(self, columns: int, hidden: int, layers: int, horizon: int, quantiles=(0.1, 0.5, 0.9)):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))
        self.rnn = nn.LSTM(columns, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, horizon * len(quantiles))

    def forward(self, x):
        state = self.rnn(x)[0][:, -1]
        return self.head(state).view(x.size(0), -1, len(self.quantiles))

    def loss(self, x, y):
        error = y[..., None] - self(x)
        return torch.maximum(self.quantiles * error, (self.quantiles - 1) * error).mean()
