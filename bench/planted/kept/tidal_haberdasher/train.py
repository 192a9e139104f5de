"""Two-tower retrieval model with BPR loss on synthetic purchase logs."""
import os
import time
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FIX = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class ModelConfig:
    n_users: int = 160_000
    n_items: int = 60_000
    dim: int = 32
    hidden: int = 96
    out: int = 48


@dataclass
class TrainConfig:
    steps: int = int(os.environ.get("PLANTED_STEPS", 500))
    batch_size: int = 512
    n_negatives: int = 4
    lr: float = 0.05
    n_events: int = 400_000
    seed: int = 77
    report_every: int = 50
    model: ModelConfig = field(default_factory=ModelConfig)


class PurchaseLog:
    """Events drawn from a latent-cluster model: users mostly buy inside their own cluster."""

    def __init__(self, cfg: TrainConfig, n_clusters=200):
        rng = np.random.default_rng(cfg.seed)
        m = cfg.model
        user_cluster = rng.integers(0, n_clusters, m.n_users)
        by_cluster = np.argsort(rng.integers(0, n_clusters, m.n_items), kind="stable")
        per_cluster = m.n_items // n_clusters
        users = rng.integers(0, m.n_users, cfg.n_events)
        rank = np.minimum((rng.pareto(1.2, cfg.n_events) * 8).astype(np.int64), per_cluster - 1)
        inside = by_cluster[user_cluster[users] * per_cluster + rank]
        outside = rng.integers(0, m.n_items, cfg.n_events)
        items = np.where(rng.random(cfg.n_events) < 0.85, inside, outside)
        self.users = torch.from_numpy(users)
        self.items = torch.from_numpy(items)
        self.n_items = m.n_items
        self.gen = torch.Generator().manual_seed(cfg.seed)

    def batches(self, size, n_negatives):
        while True:
            order = torch.randperm(len(self.users), generator=self.gen)
            for idx in order.split(size):
                if len(idx) < size:
                    continue
                negatives = torch.randint(0, self.n_items, (size, n_negatives), generator=self.gen)
                yield self.users[idx], self.items[idx], negatives


class Tower(nn.Module):
    def __init__(self, n, cfg: ModelConfig):
        super().__init__()
        if FIX:
            self.table = nn.Embedding(n, cfg.dim, sparse=True)
        else:
            self.table = nn.Embedding(n, cfg.dim)
        nn.init.normal_(self.table.weight, std=0.5)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.dim, cfg.hidden),
            nn.SiLU(),
            nn.LayerNorm(cfg.hidden),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.SiLU(),
            nn.Linear(cfg.hidden, cfg.out),
        )

    def forward(self, ids):
        return F.normalize(self.mlp(self.table(ids)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.user = Tower(cfg.n_users, cfg)
        self.item = Tower(cfg.n_items, cfg)
        self.scale = nn.Parameter(torch.tensor(4.0))

    def score(self, users, items):
        u = self.user(users).unsqueeze(1)
        v = self.item(items)
        return self.scale * (u * v).sum(-1)


class Trainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.log = PurchaseLog(cfg)
        self.model = TwoTower(cfg.model)
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=cfg.lr, initial_accumulator_value=0.1)

    def step(self, users, positives, negatives):
        scores = self.model.score(users, torch.cat([positives.unsqueeze(1), negatives], dim=1))
        loss = -F.logsigmoid(scores[:, :1] - scores[:, 1:]).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), (scores[:, 0] > scores[:, 1:].max(1).values).float().mean().detach()

    def fit(self):
        cfg = self.cfg
        running_auc = 0.0
        start = time.perf_counter()
        for n, batch in enumerate(self.log.batches(cfg.batch_size, cfg.n_negatives), 1):
            loss, auc = self.step(*batch)
            running_auc += auc
            if n % cfg.report_every == 0:
                print(f"[{n:5d}] loss {loss:.4f}  hit@1 of {1 + cfg.n_negatives}: {running_auc / cfg.report_every:.3f}")
                running_auc = 0.0
            if n == cfg.steps:
                break
        return n, time.perf_counter() - start, loss.item()


if __name__ == "__main__":
    steps, seconds, loss = Trainer(TrainConfig()).fit()
    print(f"{steps} steps in {seconds:.2f} s, loss {loss:.6f}")
