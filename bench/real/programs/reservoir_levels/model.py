"""Encoder and decoder of GRU cells with attention over the past, after the seq2seq tutorials."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.GRUCell(inputs, hidden)

    def forward(self, past):
        state = past.new_zeros(past.size(0), self.hidden)
        outputs = []
        for t in range(past.size(1)):
            state = self.cell(past[:, t], state)
            outputs.append(state)
        return torch.stack(outputs, dim=1), state


class Decoder(nn.Module):
    def __init__(self, known, hidden, dropout):
        super().__init__()
        self.cell = nn.GRUCell(known + 1 + hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.head = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 1))

    def forward(self, memory, state, level, known, target=None):
        predictions = []
        for t in range(known.size(1)):
            scores = torch.bmm(memory, self.query(state).unsqueeze(2)) / memory.size(2) ** 0.5
            context = (scores.softmax(1) * memory).sum(1)
            state = self.cell(torch.cat([known[:, t], level, context], dim=1), state)
            step = level + self.head(torch.cat([state, context], dim=1))
            predictions.append(step)
            level = step if target is None else target[:, t:t + 1]
        return torch.cat(predictions, dim=1)


class LevelForecaster(nn.Module):
    def __init__(self, inputs=8, known=6, hidden=48, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(inputs, hidden)
        self.decoder = Decoder(known, hidden, dropout)

    def forward(self, past, known, target=None):
        memory, state = self.encoder(past)
        return self.decoder(memory, state, past[:, -1, :1], known, target)
