"""Predict whether a loan defaults from application features (synthetic)."""

import os
import random
import time
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CARDINALITIES = [51, 12, 7, 24, 5, 300]


@dataclass
class Config:
    seed: int = 7
    n_train: int = 120_000
    n_valid: int = 15_000
    n_numeric: int = 24
    batch_size: int = 2048
    lr: float = 2e-3
    weight_decay: float = 1e-5
    hidden: list = field(default_factory=lambda: [128, 64])
    emb_dim: int = 8
    dropout: float = 0.1
    max_steps: int = int(os.environ.get("PLANTED_STEPS", 900))
    log_every: int = 50


def make_loans(n, n_numeric, rng):
    num = rng.normal(size=(n, n_numeric)).astype(np.float32)
    num[:, 0] = np.exp(0.6 * num[:, 0])
    num[:, 1] = np.abs(num[:, 1]) * 3
    cat = np.stack([rng.integers(0, c, size=n) for c in CARDINALITIES], axis=1)
    logit = (
        0.9 * num[:, 2]
        - 0.7 * np.log1p(num[:, 0])
        + 0.5 * num[:, 3] * num[:, 4]
        + 0.8 * (cat[:, 2] == 3)
        - 0.6 * (cat[:, 1] > 8)
        + 0.03 * (cat[:, 0] % 10)
        - 1.0
    )
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return num, cat.astype(np.int64), y


class LoanDataset(Dataset):
    def __init__(self, num, cat, y, mean, std):
        self.num = torch.from_numpy((num - mean) / std)
        self.cat = torch.from_numpy(cat)
        self.y = torch.from_numpy(y)

    def __len__(self):
        return self.y.shape[0]

    def __getitem__(self, index):
        return self.num[index], self.cat[index], self.y[index]


class LoanNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c, cfg.emb_dim) for c in CARDINALITIES)
        width = cfg.n_numeric + cfg.emb_dim * len(CARDINALITIES)
        layers = []
        for h in cfg.hidden:
            layers += [nn.Linear(width, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(cfg.dropout)]
            width = h
        layers.append(nn.Linear(width, 1))
        self.mlp = nn.Sequential(*layers)

    def forward(self, num, cat):
        parts = [num] + [e(cat[:, i]) for i, e in enumerate(self.embs)]
        return self.mlp(torch.cat(parts, dim=1)).squeeze(1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(cfg.seed)
        torch.manual_seed(cfg.seed)
        rng = np.random.default_rng(cfg.seed)
        train = make_loans(cfg.n_train, cfg.n_numeric, rng)
        valid = make_loans(cfg.n_valid, cfg.n_numeric, rng)
        mean, std = train[0].mean(0), train[0].std(0)
        self.train_set = LoanDataset(*train, mean, std)
        self.valid_set = LoanDataset(*valid, mean, std)
        self.model = LoanNet(cfg)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=1000)
        self.step = 0

    def train_loader(self):
        g = torch.Generator().manual_seed(self.cfg.seed)
        if os.environ.get("PLANTED_FIX") == "1":
            order = BatchSampler(RandomSampler(self.train_set, generator=g), self.cfg.batch_size, drop_last=True)
            return DataLoader(self.train_set, sampler=order, batch_size=None, generator=g)
        return DataLoader(self.train_set, batch_size=self.cfg.batch_size, shuffle=True, drop_last=True, generator=g)

    def train_step(self, num, cat, y):
        self.model.train()
        self.opt.zero_grad(set_to_none=True)
        loss = F.binary_cross_entropy_with_logits(self.model(num, cat), y)
        loss.backward()
        self.opt.step()
        self.sched.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        v = self.valid_set
        p = torch.sigmoid(self.model(v.num, v.cat))
        return roc_auc_score(v.y.numpy(), p.numpy())

    def fit(self):
        loader = self.train_loader()
        epoch, loss = 0, float("nan")
        start = time.perf_counter()
        while self.step < self.cfg.max_steps:
            for num, cat, y in loader:
                loss = self.train_step(num, cat, y)
                self.step += 1
                if self.step % self.cfg.log_every == 0:
                    print(f"epoch {epoch} step {self.step} loss {loss:.4f} lr {self.sched.get_last_lr()[0]:.2e}")
                if self.step >= self.cfg.max_steps:
                    break
            epoch += 1
            print(f"epoch {epoch} done, valid AUC {self.validate():.4f}")
        took = time.perf_counter() - start
        print(f"{self.step} steps in {took:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
