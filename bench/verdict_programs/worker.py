"""One DataLoader worker makes the samples and is the bottleneck."""

import torch
from burn import Burn
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Parsed(Dataset):
    def __len__(self):
        return 2_000_000

    def __getitem__(self, index):
        with Burn():
            value = float(index)
            for power in range(4000):
                value = (value * 1.0001 + power) % 97.0
            return torch.full((32,), value / 97.0), torch.tensor([value / 50.0])


model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for x, y in DataLoader(Parsed(), batch_size=16, num_workers=1):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
