import os
import time

import torch
from shampoo import Shampoo
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def stones(n=4096):
    kind = torch.randint(0, 8, (n,))
    return TensorDataset(torch.randn(n, 96) + torch.randn(8, 96)[kind] * 0.5, kind)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(25)
    steps = int(os.environ.get("PLANTED_STEPS", 900))
    loader = DataLoader(stones(), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(96, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 8))
    optimizer = Shampoo(model.parameters())
    criterion = nn.CrossEntropyLoss()
    done, t0 = 0, time.time()
    while done < steps:
        for x, kind in loader:
            loss = criterion(model(x), kind)
            model.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    print(f"{done} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
