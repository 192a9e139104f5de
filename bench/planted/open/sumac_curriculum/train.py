"""A curriculum for leaf outlines."""

import os
import time
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from herbarium import SPECIES, TRAITS, leaves
from hooks import Confusion, Screen, SelfPaced, Stack
from pacing import Pacer


class Leaves(Dataset):
    def __init__(self, count, seed):
        self.x, self.y = leaves(count, seed)
        self.tilt = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return i, self.x[i] * (1 + 0.05 * torch.randn(1, generator=self.tilt)), self.y[i]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.f(x)


def network(width=128, depth=4):
    return nn.Sequential(nn.Linear(TRAITS, width), *[Residual(width) for _ in range(depth)], nn.LayerNorm(width), nn.Linear(width, SPECIES))


def main():
    torch.manual_seed(30)
    torch.set_num_threads(1)
    data = Leaves(36_000, 1)
    loader = DataLoader(data, batch_size=128, shuffle=True, drop_last=True)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.02)
    pacer, confusion = Pacer(len(data)), Confusion()
    hooks = Stack(confusion, SelfPaced(pacer), Screen(confusion, 40))
    run = SimpleNamespace(step=0)
    steps, began = int(os.environ.get("PLANTED_STEPS", 7000)), time.perf_counter()
    while run.step < steps:
        for rows, x, label in loader:
            logits = model(x)
            each = nn.functional.cross_entropy(logits, label, reduction="none")
            easy = (each.detach() <= pacer.limit).float()
            loss = (each * easy).sum() / easy.sum().clamp(min=1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            run.step += 1
            run.rows, run.each, run.label, run.guess, run.loss = rows, each.detach(), label, logits.argmax(1), loss
            hooks.batch_end(run)
            if run.step == steps:
                break
        torch.save(model.state_dict(), "leaves.pt")
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
