import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Flows(Dataset):
    def __init__(self, n=6400):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(n, 128)).astype(np.float32)
        self.y = np.tanh(self.x[:, :4].sum(1))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] * (1 + 0.01 * np.float32(i % 3)), self.y[i]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Flows(), batch_size=128, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(
        nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    limit, step, start = int(os.environ.get("PLANTED_STEPS", 500)), 0, time.time()
    while step < limit:
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
