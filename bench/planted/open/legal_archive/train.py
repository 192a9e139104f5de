import os
import time

import torch
from accelerate import Accelerator
from archive import Cases
from torch import nn
from torch.utils.data import DataLoader


class CaseNet(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(3000, dim)
        self.mix = nn.Sequential(nn.Linear(dim, 96), nn.GELU(), nn.Linear(96, dim))
        self.out = nn.Linear(dim, 2)

    def forward(self, ids):
        h = self.embed(ids)
        return self.out((h + self.mix(h)).amax(1))


def training_function():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(Cases(), batch_size=8, num_workers=2, persistent_workers=True)
    model = CaseNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    limit, step, start = int(os.environ.get("PLANTED_STEPS", 800)), 0, time.time()
    while True:
        for ids, outcome in loader:
            loss = nn.functional.cross_entropy(model(ids), outcome)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == limit:
                accelerator.print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
                return


if __name__ == "__main__":
    training_function()
