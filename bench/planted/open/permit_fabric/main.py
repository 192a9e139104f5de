"""Days until a building permit is granted. Lightning Fabric."""

import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


@dataclass
class Options:
    steps: int = int(os.environ.get("PLANTED_STEPS", 1300))
    micro_batch: int = 6
    accumulate: int = 8
    width: int = 96
    lr: float = 1e-3

    def __post_init__(self):
        if os.environ.get("PLANTED_FIX") == "1":
            self.micro_batch, self.accumulate = 48, 1


class Permit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.kind = nn.Embedding(40, width)
        self.office = nn.Embedding(120, width)
        self.numbers = nn.Linear(12, width)
        self.mix = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.days = nn.Linear(width, 1)

    def forward(self, kind, office, numbers):
        tokens = torch.stack([self.kind(kind), self.office(office), self.numbers(numbers)], 1)
        return self.days(self.mix(tokens).mean(1)).squeeze(1)


def permits(n=6000):
    g = torch.Generator().manual_seed(60)
    kind = torch.randint(0, 40, (n,), generator=g)
    office = torch.randint(0, 120, (n,), generator=g)
    numbers = torch.randn(n, 12, generator=g)
    days = numbers[:, 0] + 0.05 * (kind % 7) + 0.02 * (office % 11)
    return TensorDataset(kind, office, numbers, days)


def main(o):
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(0, verbose=False)
    model = Permit(o.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr)
    model, optimizer = fabric.setup(model, optimizer)
    order = torch.Generator().manual_seed(1)
    loader = fabric.setup_dataloaders(DataLoader(permits(), batch_size=o.micro_batch, shuffle=True, drop_last=True, generator=order))
    done, seen, summed, ema = 0, 0, 0.0, None
    t = time.time()
    while done < o.steps:
        for kind, office, numbers, days in loader:
            seen += 1
            loss = F.mse_loss(model(kind, office, numbers), days) / o.accumulate
            fabric.backward(loss)
            summed += loss.item()
            if seen % o.accumulate:
                continue
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            ema = summed if ema is None else 0.9 * ema + 0.1 * summed
            summed = 0.0
            if done % 50 == 0:
                fabric.print(done, round(ema, 4))
            if done == o.steps:
                break
    fabric.print(f"{done} steps in {time.time() - t:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main(Options())
