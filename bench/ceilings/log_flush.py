"""Each step logs a line for each of 150 metrics, and each line is flushed; the fix logs nothing."""

import logging
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"

data = TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,)))


log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(logging.FileHandler("metrics.log"))
names = [f"layer{index}" for index in range(150)]


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not FIX:
                for name in names:
                    log.info("%s loss %.6f", name, float(loss.detach()))


if __name__ == "__main__":
    main()
