"""What all programs here train: a small classifier on equal batches. `python NAME.py candidate` trains the changed version of it."""

import sys

import torch
from torch import nn

CANDIDATE = sys.argv[1:] == ["candidate"]
torch.set_num_threads(1)
torch.manual_seed(0)


class Task:
    """`step(inputs)` trains once and returns the outputs."""

    def __init__(self, width=192):
        self.model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.inputs, self.targets = torch.randn(64, 64), torch.randint(10, (64,))

    def step(self, inputs=None):
        outputs = self.model(self.inputs if inputs is None else inputs)
        loss = nn.functional.cross_entropy(outputs, self.targets[: len(outputs)])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return outputs.detach()
