import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAST = os.environ.get("PLANTED_FIX") == "1"


class Mosaic(nn.Module):
    def __init__(self, width=288, depth=5):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(108, width), *(nn.Linear(width, width) for _ in range(depth)), nn.Linear(width, 108)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class UnitMonitor:
    """Running mean of the gradient norm of every unit."""

    def __init__(self, model, decay=0.95):
        self.model, self.decay, self.means = model, decay, {}

    def after_backward(self):
        for name, p in self.model.named_parameters():
            if p.dim() < 2:
                continue
            if FAST:
                self.means[name] = self.decay * self.means.get(name, 0.0) + (1 - self.decay) * p.grad.norm(dim=1)
                continue
            for unit, row in enumerate(p.grad):
                key = f"{name}.{unit}"
                old = self.means.get(key, 0.0)
                self.means[key] = self.decay * old + (1 - self.decay) * row.norm().item()


def train(limit):
    model = Mosaic()
    monitor = UnitMonitor(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tiles = torch.rand(3000, 108)
    loader = DataLoader(TensorDataset(tiles), batch_size=64, shuffle=True)
    step, start = 0, time.time()
    while step < limit:
        for (x,) in loader:
            loss = (model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            monitor.after_backward()
            optimizer.step()
            step += 1
            if step == limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(4)
    train(int(os.environ.get("PLANTED_STEPS", 900)))
