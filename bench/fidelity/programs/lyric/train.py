"""Trains a small GPT on songs.  python train.py [--key=value ...]"""
import math
import os
import sys
import time
from contextlib import nullcontext

import numpy as np
import torch
from model import GPT, GPTConfig
from prepare import prepare

out_dir = "out"
data_dir = "data"
init_from = "scratch"
resume_file = ""
eval_interval = 30
eval_iters = 6
save_interval = 30
log_interval = 5
gradient_accumulation_steps = 4
batch_size = 8
block_size = 48
learning_rate = 4e-3
weight_decay = 1e-1
beta1, beta2 = 0.9, 0.99
grad_clip = 1.0
max_iters = 120
warmup_iters = 20
lr_decay_iters = 120
min_lr = 4e-4
dtype = "float32"
seed = 1337
for argument in sys.argv[1:]:
    key, value = argument.removeprefix("--").split("=")
    globals()[key] = type(globals()[key])(value)

os.makedirs(out_dir, exist_ok=True)
vocab_size = prepare(data_dir)
torch.manual_seed(seed)
ctx = nullcontext() if dtype == "float32" else torch.amp.autocast("cpu", dtype=getattr(torch, dtype))


def get_batch(split, generator=None):
    data = np.memmap(os.path.join(data_dir, f"{split}.bin"), dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


model = GPT(GPTConfig(block_size=block_size, vocab_size=vocab_size))
scaler = torch.amp.GradScaler("cpu", enabled=(dtype == "float16"))
optimizer = model.configure_optimizers(weight_decay, learning_rate, (beta1, beta2))
iter_num, best_val_loss = 0, 1e9
if init_from == "resume":
    checkpoint = torch.load(resume_file, weights_only=False)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    torch.set_rng_state(checkpoint["rng"])
    iter_num, best_val_loss = checkpoint["iter_num"], checkpoint["best_val_loss"]


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        generator = torch.Generator().manual_seed(99)
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split, generator)
            with ctx:
                _, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    if it > lr_decay_iters:
        return min_lr
    decay_ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    coeff = 0.5 * (1.0 + math.cos(math.pi * decay_ratio))
    return min_lr + coeff * (learning_rate - min_lr)


def save():
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
        "iter_num": iter_num,
        "best_val_loss": best_val_loss,
    }
    torch.save(checkpoint, os.path.join(out_dir, f"ckpt_{iter_num}.pt"))


t0 = time.time()
while iter_num < max_iters:
    lr = get_lr(iter_num)
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr

    for micro_step in range(gradient_accumulation_steps):
        X, Y = get_batch("train")
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

    iter_num += 1
    if iter_num % log_interval == 0:
        lossf = loss.item() * gradient_accumulation_steps
        dt, t0 = time.time() - t0, time.time()
        print(f"iter {iter_num}: loss {lossf:.4f}, time {dt * 1000:.0f}ms", flush=True)
    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
        best_val_loss = min(best_val_loss, losses["val"].item())
    if iter_num % save_interval == 0:
        save()
