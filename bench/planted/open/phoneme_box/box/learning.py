import os
import time

import torch
from torch import nn


class Recogniser(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(40 if i == 0 else width, width) for i in range(layers))
        self.phoneme = nn.Linear(width, 44)

    def forward(self, frames):
        states = [None] * len(self.cells)
        for frame in frames.unbind(1):
            for i, cell in enumerate(self.cells):
                frame = states[i] = cell(frame, states[i])
        return self.phoneme(frame)


def learn(values):
    torch.manual_seed(50)
    steps = int(os.environ.get("PLANTED_STEPS", 80))
    model = Recogniser(values["layers"], values["width"])
    optimizer = torch.optim.RMSprop(model.parameters(), lr=values["lr"])
    labels = torch.randint(0, 44, (2048,))
    frames = torch.randn(2048, 12, 40) + torch.randn(44, 1, 40)[labels]
    start = time.time()
    for step in range(steps):
        rows = torch.arange(step * values["batch"], (step + 1) * values["batch"]) % 2048
        loss = nn.functional.cross_entropy(model(frames[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
