"""Waiting time at the surgery from the arrivals so far (ragged), with accelerate."""

import os
import time

import torch
from accelerate import Accelerator
from days import Days, together
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)


class Waiting(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.inp = nn.Linear(6, width)
        self.mid = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.score = nn.Linear(width, 1)
        self.out = nn.Linear(width, 1)

    def forward(self, x, mask):
        h = torch.relu(self.inp(x))
        h = h + self.mid(h)
        w = self.score(h).squeeze(-1).masked_fill(~mask, -1e9).softmax(-1)
        return self.out((w.unsqueeze(-1) * h).sum(1)).squeeze(-1)


@torch.no_grad()
def held_out(model, loader):
    model.eval()
    err = n = 0.0
    for x, mask, y in loader:
        err += (model(x, mask) - y).abs().sum().item()
        n += len(y)
    model.train()
    return err / n


def main():
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    fix = os.environ.get("PLANTED_FIX", "0")
    test_every = 120 if fix == "2" else 12
    train = DataLoader(Days(1600, seed=1), batch_size=24, shuffle=True, collate_fn=together, drop_last=True)
    test = [together(list(Days(64, seed=s))) for s in range(50, 54)]
    model = Waiting()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    model, optimizer, train = accelerator.prepare(model, optimizer, train)
    steps = int(os.environ.get("PLANTED_STEPS", 780))
    step, ema = 0, None
    start = time.time()
    while step < steps:
        for x, mask, y in train:
            loss = nn.functional.l1_loss(model(x, mask), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
            if step % test_every == 0:
                error = held_out(model, test)
                if step % 120 == 0:
                    accelerator.print(f"{step} train {ema:.3f} test {error:.3f}")
            if step == steps:
                break
    accelerator.print(f"{step} steps in {time.time() - start:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
