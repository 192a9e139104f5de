"""Span denoising on a token corpus. python train.py"""

import math
import os
import time
from pathlib import Path

import torch

from config import Config
from corpus import Corpus
from model import SpanModel

cfg = Config()
torch.set_num_threads(1)
torch.manual_seed(cfg.seed)
max_iters = int(os.environ.get("PLANTED_STEPS", cfg.max_iters))


def get_lr(it):
    if it < cfg.warmup:
        return cfg.lr * (it + 1) / cfg.warmup
    ratio = (it - cfg.warmup) / max(1, cfg.max_iters - cfg.warmup)
    return cfg.min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (cfg.lr - cfg.min_lr)


corpus = Corpus(cfg)
model = SpanModel(cfg)
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": rest, "weight_decay": 0.0}], lr=cfg.lr, betas=(0.9, 0.95)
)


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.zeros(cfg.eval_iters)
    for k in range(cfg.eval_iters):
        x, y, w = corpus.get_batch("val")
        losses[k] = model(x, y, w)[1]
    model.train()
    return losses.mean().item()


out = Path(cfg.out_dir)
out.mkdir(exist_ok=True)
lossf, t0 = float("nan"), time.time()
x, y, w = corpus.get_batch("train")
for it in range(max_iters):
    lr = get_lr(it)
    for group in optimizer.param_groups:
        group["lr"] = lr
    if it and it % cfg.eval_interval == 0:
        print(f"step {it}: val loss {estimate_loss():.4f}")
    logits, loss = model(x, y, w)
    x, y, w = corpus.get_batch("train")
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % cfg.log_interval == 0:
        lossf = loss.item()
        print(f"iter {it}: loss {lossf:.4f}, norm {norm.item():.3f}, lr {lr:.2e}")
elapsed = time.time() - t0
torch.save({"model": model.state_dict(), "iter": max_iters}, out / "ckpt.pt")
print(f"{max_iters} steps in {elapsed:.2f}s, loss {lossf:.6f}")
