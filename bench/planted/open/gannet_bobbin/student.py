import torch
from torch import nn
from torch.nn import functional as F


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.awake = True

    def forward(self, x):
        if not self.awake:
            return x
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Student(nn.Module):
    def __init__(self, inputs, width, depth, classes):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.cells = nn.ModuleList(Cell(width) for _ in range(depth))
        self.leave = nn.Linear(width, classes)

    def forward(self, x):
        x = self.enter(x)
        for cell in self.cells:
            x = cell(x)
        return self.leave(x)
