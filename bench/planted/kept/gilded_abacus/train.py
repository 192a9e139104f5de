"""
Claim-severity regression on a policy table (numeric + categorical columns), entity
embeddings and a small residual MLP. Everything is generated, nothing is downloaded.
"""
import json
import math
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

FIX = os.environ.get("PLANTED_FIX") == "1"

CONFIG = json.loads("""
{
  "rows": 120000,
  "numeric": 24,
  "cardinalities": [7, 12, 52, 96, 340, 1200],
  "batch_size": 1024,
  "width": 64,
  "blocks": 2,
  "dropout": 0.1,
  "lr": 0.002,
  "weight_decay": 1e-05,
  "seed": 2024,
  "max_steps": 1200
}
""")


def make_table(cfg):
    rng = np.random.default_rng(cfg["seed"])
    n, k = cfg["rows"], cfg["numeric"]
    mix = rng.normal(size=(k, k)) / math.sqrt(k)
    num = (rng.standard_t(5, size=(n, k)) @ mix).astype(np.float32)
    cat = np.stack([rng.integers(0, c, n) for c in cfg["cardinalities"]], axis=1)
    effect = sum(rng.normal(scale=0.3, size=c)[cat[:, j]] for j, c in enumerate(cfg["cardinalities"]))
    signal = num[:, 0] * num[:, 1] + np.sin(2 * num[:, 2]) + np.abs(num[:, 3]) + effect
    signal = signal * (1.0 + 0.5 * (cat[:, 0] == 3))
    target = np.log1p(np.exp(signal + rng.gumbel(scale=0.4, size=n))).astype(np.float32)
    exposure = rng.uniform(0.2, 1.0, n).astype(np.float32)
    return num, cat, target, exposure


class Standardizer:
    def fit(self, x):
        self.lo, self.hi = np.quantile(x, [0.005, 0.995], axis=0)
        x = np.clip(x, self.lo, self.hi)
        self.mean, self.std = x.mean(0), x.std(0) + 1e-6
        return self

    def __call__(self, x):
        return ((np.clip(x, self.lo, self.hi) - self.mean) / self.std).astype(np.float32)


class PolicyTable(Dataset):
    def __init__(self, num, cat, target, exposure):
        self.num = torch.from_numpy(num)
        self.cat = torch.from_numpy(cat)
        self.target = torch.from_numpy(target)
        self.exposure = torch.from_numpy(exposure)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return self.num[i], self.cat[i], self.target[i], self.exposure[i]


class ResidualBlock(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )

    def forward(self, x):
        return x + self.body(x)


class SeverityNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        dims = [min(24, 1 + int(math.sqrt(c))) for c in cfg["cardinalities"]]
        self.tables = nn.ModuleList(nn.Embedding(c, d) for c, d in zip(cfg["cardinalities"], dims))
        self.stem = nn.Linear(cfg["numeric"] + sum(dims), cfg["width"])
        self.blocks = nn.Sequential(*(ResidualBlock(cfg["width"], cfg["dropout"]) for _ in range(cfg["blocks"])))
        self.head = nn.Sequential(nn.LayerNorm(cfg["width"]), nn.Linear(cfg["width"], 1))

    def forward(self, num, cat):
        embedded = [table(cat[:, j]) for j, table in enumerate(self.tables)]
        return self.head(self.blocks(self.stem(torch.cat([num, *embedded], dim=1)))).squeeze(1)


def weighted_huber(pred, target, weight):
    return (nn.functional.huber_loss(pred, target, reduction="none") * weight).sum() / weight.sum()


@torch.inference_mode()
def validate(model, table):
    model.eval()
    pred = torch.cat([model(n, c) for n, c in zip(table.num.split(8192), table.cat.split(8192))])
    return weighted_huber(pred, table.target, table.exposure).item()


def run(cfg):
    torch.manual_seed(cfg["seed"])
    num, cat, target, exposure = make_table(cfg)
    cut = int(0.9 * cfg["rows"])
    scale = Standardizer().fit(num[:cut])
    train_table = PolicyTable(scale(num[:cut]), cat[:cut], target[:cut], exposure[:cut])
    valid_table = PolicyTable(scale(num[cut:]), cat[cut:], target[cut:], exposure[cut:])

    gen = torch.Generator().manual_seed(cfg["seed"])
    if FIX:
        batches = BatchSampler(RandomSampler(train_table, generator=gen), cfg["batch_size"], drop_last=True)
        loader = DataLoader(train_table, batch_size=None, sampler=batches, generator=gen)
    else:
        loader = DataLoader(train_table, batch_size=cfg["batch_size"], shuffle=True, drop_last=True, generator=gen)

    model = SeverityNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])
    steps = int(os.environ.get("PLANTED_STEPS", cfg["max_steps"]))
    done, epoch, began = 0, 0, time.perf_counter()
    while done < steps:
        model.train()
        total, seen = 0.0, 0
        for n, c, y, w in loader:
            loss = weighted_huber(model(n, c), y, w)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            seen += 1
            done += 1
            if done == steps:
                break
        epoch += 1
        print(f"epoch {epoch:2d}  train {total / seen:.4f}  valid {validate(model, valid_table):.4f}")
    print(f"{done} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    run(CONFIG)
