"""Bird-call classifier: log-mel frames -> transformer encoder -> species."""

import math
import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from features import N_MELS, make_corpus


@dataclass
class Config:
    n_train: int = 1200
    n_val: int = 120
    n_species: int = 10
    min_seconds: float = 0.4
    max_seconds: float = 5.0
    max_frames: int = 501
    batch_size: int = 8
    dim: int = 64
    heads: int = 4
    layers: int = 2
    lr: float = 1e-3
    warmup: int = 50
    clip: float = 1.0
    steps: int = int(os.environ.get("PLANTED_STEPS", 280))
    log_every: int = 30
    seed: int = 5


class CallEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.proj = nn.Linear(N_MELS, cfg.dim)
        layer = nn.TransformerEncoderLayer(
            cfg.dim, cfg.heads, 3 * cfg.dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.n_species)
        pos = torch.arange(cfg.max_frames)[:, None]
        div = torch.exp(torch.arange(0, cfg.dim, 2) * (-math.log(10000.0) / cfg.dim))
        pe = torch.zeros(cfg.max_frames, cfg.dim)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x, lengths):
        pad = torch.arange(x.size(1))[None, :] >= lengths[:, None]
        h = self.proj(x) + self.pe[: x.size(1)]
        h = self.norm(self.encoder(h, src_key_padding_mask=pad))
        keep = (~pad).unsqueeze(-1).float()
        return self.head((h * keep).sum(1) / keep.sum(1))


class Collator:
    def __init__(self, cfg):
        self.max_frames = cfg.max_frames

    def __call__(self, items):
        lengths = torch.tensor([len(x) for x, _ in items])
        frames = self.max_frames
        if os.environ.get("PLANTED_FIX") == "1":
            frames = int(lengths.max())
        batch = torch.zeros(len(items), frames, N_MELS)
        for i, (x, _) in enumerate(items):
            batch[i, : len(x)] = x
        return batch, lengths, torch.tensor([y for _, y in items])


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        train = make_corpus(cfg.n_train, cfg.n_species, cfg.min_seconds, cfg.max_seconds, cfg.seed)
        val = make_corpus(cfg.n_val, cfg.n_species, cfg.min_seconds, cfg.max_seconds, cfg.seed + 1)
        val.sort(key=lambda item: len(item[0]))
        collate = Collator(cfg)
        self.loader = DataLoader(train, cfg.batch_size, shuffle=True, drop_last=True, collate_fn=collate)
        self.val_loader = DataLoader(val, cfg.batch_size, collate_fn=collate)
        self.model = CallEncoder(cfg)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.01)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / cfg.warmup))

    def batches(self):
        while True:
            yield from self.loader

    def fit(self):
        cfg, losses = self.cfg, []
        t0 = time.perf_counter()
        for step, (x, lengths, y) in enumerate(self.batches(), 1):
            loss = F.cross_entropy(self.model(x, lengths), y)
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), cfg.clip)
            self.opt.step()
            self.sched.step()
            losses.append(loss.item())
            if step % cfg.log_every == 0:
                print(f"step {step:4d}  loss {sum(losses[-cfg.log_every :]) / cfg.log_every:.4f}")
            if step >= cfg.steps:
                break
        return step, time.perf_counter() - t0, losses[-1]

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits = sum((self.model(x, n).argmax(-1) == y).sum().item() for x, n, y in self.val_loader)
        return hits / len(self.val_loader.dataset)


if __name__ == "__main__":
    trainer = Trainer(Config())
    steps, wall, last = trainer.fit()
    print(f"val accuracy {trainer.evaluate():.3f}")
    print(f"{steps} steps in {wall:.1f} s, loss {last:.6f}")
