import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from features import log_mel
from torch import nn
from torch.utils.data import DataLoader, Dataset

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 320))


class Keywords(Dataset):
    def __init__(self, count=768, words=8):
        rng = np.random.default_rng(1)
        self.labels = rng.integers(0, words, count)
        t = np.arange(8000) / 8000
        self.waves = np.sin(2 * np.pi * (200 + 150 * self.labels[:, None]) * t) + 0.2 * rng.normal(size=(count, 8000))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        shift = int(torch.randint(0, 2000, ()))
        gain = 0.5 + float(torch.rand(()))
        return log_mel(np.roll(self.waves[i], shift) * gain), self.labels[i]


class Net(nn.Module):
    def __init__(self, words=8):
        super().__init__()
        self.a = nn.Conv1d(24, 64, 5, padding=2)
        self.b = nn.Conv1d(64, 96, 5, padding=2)
        self.head = nn.Linear(96, words)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = F.relu(self.b(x))
        return self.head(x.mean(-1))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    accelerator = Accelerator(cpu=True)
    model = Net()
    loader = DataLoader(Keywords(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    done, began = 0, time.perf_counter()
    for epoch in range(50):
        for mel, word in loader:
            loss = F.cross_entropy(model(mel), word)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            if done >= MAX_STEPS:
                break
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
        if done >= MAX_STEPS:
            break
    print(f"{done} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
