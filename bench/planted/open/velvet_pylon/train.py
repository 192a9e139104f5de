"""Churn model: residual MLP over numeric and categorical columns."""

import os
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = Path(__file__).resolve().parent


@dataclass
class Table:
    numeric: torch.Tensor
    categorical: torch.Tensor
    target: torch.Tensor

    def __len__(self):
        return len(self.target)

    def rows(self, idx):
        return self.numeric[idx], self.categorical[idx], self.target[idx]


def make_table(cfg):
    rng = np.random.default_rng(cfg["seed"])
    n, d = cfg["rows"], cfg["numeric"]
    numeric = rng.standard_normal((n, d)).astype(np.float32)
    numeric[:, ::3] = np.exp(numeric[:, ::3])
    cats = np.stack([rng.integers(0, c, n) for c in cfg["cardinalities"]], 1)
    score = numeric @ rng.normal(0, 0.3, d)
    for j, c in enumerate(cfg["cardinalities"]):
        score += rng.normal(0, 0.5, c)[cats[:, j]]
    score += 0.5 * numeric[:, 1] * numeric[:, 2]
    target = (score - np.median(score) + rng.logistic(0, 0.5, n) > 0).astype(np.float32)
    numeric = (numeric - numeric.mean(0)) / numeric.std(0)
    return Table(torch.from_numpy(numeric), torch.from_numpy(cats), torch.from_numpy(target))


class ResidualBlock(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.drop(self.down(F.relu(self.up(self.norm(x)))))


class TabularNet(nn.Module):
    def __init__(self, cfg, numeric, cardinalities):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, cfg["embed_dim"]) for c in cardinalities)
        self.inp = nn.Linear(numeric + cfg["embed_dim"] * len(cardinalities), cfg["width"])
        self.blocks = nn.Sequential(*[ResidualBlock(cfg["width"], cfg["dropout"]) for _ in range(cfg["depth"])])
        self.head = nn.Sequential(nn.LayerNorm(cfg["width"]), nn.ReLU(), nn.Linear(cfg["width"], 1))

    def forward(self, numeric, cats):
        emb = [table(cats[:, j]) for j, table in enumerate(self.tables)]
        x = self.inp(torch.cat([numeric, *emb], 1))
        return self.head(self.blocks(x)).squeeze(1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg["train"]
        self.setup_runtime(cfg["runtime"])
        self.table = make_table(cfg["data"])
        self.net = TabularNet(cfg["model"], cfg["data"]["numeric"], cfg["data"]["cardinalities"])
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=self.cfg["lr"], weight_decay=self.cfg["weight_decay"])

    def setup_runtime(self, rt):
        torch.manual_seed(rt["seed"])
        if os.environ.get("PLANTED_FIX") != "1":
            torch.set_num_threads(rt["num_threads"])

    def index_batches(self):
        bs = self.cfg["batch_size"]
        while True:
            perm = torch.randperm(len(self.table))
            for i in range(0, len(perm) - bs + 1, bs):
                yield perm[i : i + bs]

    def fit(self, steps):
        self.net.train()
        order = self.index_batches()
        start = time.perf_counter()
        for step in range(1, steps + 1):
            numeric, cats, target = self.table.rows(next(order))
            loss = F.binary_cross_entropy_with_logits(self.net(numeric, cats), target)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if step % self.cfg["log_every"] == 0:
                print(f"step {step}: bce {loss.item():.4f}")
        return loss.item(), time.perf_counter() - start


if __name__ == "__main__":
    with open(HERE / "config.toml", "rb") as f:
        config = tomllib.load(f)
    n_steps = int(os.environ.get("PLANTED_STEPS", config["train"]["steps"]))
    last, seconds = Trainer(config).fit(n_steps)
    print(f"{n_steps} steps in {seconds:.2f} s, loss {last:.6f}")
