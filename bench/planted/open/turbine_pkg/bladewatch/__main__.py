import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from .data import windows
from .journal import Journal
from .model import BladeNet


def train() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    steps = int(os.environ.get("PLANTED_STEPS", 1440))
    loader = DataLoader(TensorDataset(*windows(1024, 256, seed=1)), batch_size=8, shuffle=True)
    model = BladeNet()
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    journal = Journal(Path("runs") / "last", every=50 if os.environ.get("PLANTED_FIX") == "1" else 1)
    step, ema = 0, 0.7
    start = time.time()
    while step < steps:
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            step += 1
            value = loss.item()
            ema = 0.95 * ema + 0.05 * value
            journal.write(step, value, model)
            if step >= steps:
                break
    spent = time.time() - start
    journal.close()
    print(f"{step} steps in {spent:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    train()
