"""The model is evaluated every 20 steps; the fix does not."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"

data = TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,)))


held_out = torch.randn(4096, 256)


def evaluate(model):
    model.eval()
    with torch.no_grad():
        score = sum(float(model(part).mean()) for part in held_out.split(128))
    model.train()
    return score


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    step = 0
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if not FIX and step % 20 == 0:
                evaluate(model)


if __name__ == "__main__":
    main()
