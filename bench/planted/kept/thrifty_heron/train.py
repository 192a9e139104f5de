"""Character-level GPT on an invented language."""
import math
import os
import time
from dataclasses import dataclass

import torch

from corpus import make_corpus
from gpt import GPT


@dataclass
class Config:
    seed: int = 3
    n_chars: int = 300_000
    context: int = 48
    dim: int = 64
    depth: int = 3
    heads: int = 4
    batch_size: int = 24
    micro_batch_size: int = 24 if os.environ.get("PLANTED_FIX") == "1" else 1
    lr: float = 1e-3
    min_lr: float = 1e-4
    warmup: int = 20
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    steps: int = int(os.environ.get("PLANTED_STEPS", 400))
    log_every: int = 20


class CharData:
    def __init__(self, text, cfg):
        self.chars = sorted(set(text))
        index = {c: i for i, c in enumerate(self.chars)}
        ids = torch.tensor([index[c] for c in text])
        cut = int(0.95 * len(ids))
        self.train, self.val = ids[:cut], ids[cut:]
        self.context = cfg.context
        self.generator = torch.Generator().manual_seed(cfg.seed)

    def sample(self, split, n):
        ids = getattr(self, split)
        at = torch.randint(len(ids) - self.context - 1, (n, 1), generator=self.generator)
        chunk = ids[at + torch.arange(self.context + 1)]
        return chunk[:, :-1], chunk[:, 1:]

    def decode(self, ids):
        return "".join(self.chars[i] for i in ids)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.data = CharData(make_corpus(cfg.n_chars, cfg.seed), cfg)
        self.model = GPT(len(self.data.chars), cfg.dim, cfg.depth, cfg.heads, cfg.context)
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        rest = [p for p in self.model.parameters() if p.ndim < 2]
        self.opt = torch.optim.AdamW([{"params": decay, "weight_decay": cfg.weight_decay},
                                      {"params": rest, "weight_decay": 0.0}], lr=cfg.lr, betas=(0.9, 0.95), eps=1e-6)

    def lr_at(self, step):
        c = self.cfg
        if step < c.warmup:
            return c.lr * (step + 1) / c.warmup
        t = min(1.0, (step - c.warmup) / 500)
        return c.min_lr + 0.5 * (c.lr - c.min_lr) * (1 + math.cos(math.pi * t))

    def train_step(self, step):
        for group in self.opt.param_groups:
            group["lr"] = self.lr_at(step)
        x, y = self.data.sample("train", self.cfg.batch_size)
        total = 0.0
        self.opt.zero_grad(set_to_none=True)
        for xb, yb in zip(x.split(self.cfg.micro_batch_size), y.split(self.cfg.micro_batch_size)):
            loss = self.model(xb, yb) * (len(xb) / len(x))
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
        self.opt.step()
        return total

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss = self.model(*self.data.sample("val", 64)).item()
        self.model.train()
        return loss

    def fit(self):
        start = time.time()
        for step in range(self.cfg.steps):
            loss = self.train_step(step)
            if (step + 1) % self.cfg.log_every == 0:
                print(f"step {step + 1:4d}  lr {self.lr_at(step):.2e}  train {loss:.4f}")
        took = time.time() - start
        print(f"val {self.validate():.4f}")
        g = torch.Generator().manual_seed(0)
        start_ids = self.data.val[:8].unsqueeze(0)
        print(repr(self.data.decode(self.model.generate(start_ids, 60, g)[0].tolist())))
        print(f"{self.cfg.steps} steps in {took:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
