"""Sequences of very different lengths, in the same order in each run."""

import torch
from burn import Burn
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
lengths = torch.randint(4, 60, (1000,)).tolist()
cell = nn.GRU(48, 48, batch_first=True)
head = nn.Linear(48, 8)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
text, targets = torch.randn(8, 60, 48), torch.randint(8, (8,))
for step in range(1_000_000):
    with Burn():
        hidden, _ = cell(text[:, : lengths[step % len(lengths)]])
        loss = nn.functional.cross_entropy(head(hidden[:, -1]), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
