import os
import time

import numpy as np
import torch
from lm import DnaLM

torch.set_num_threads(1)
torch.manual_seed(1)
context, batch_size = 640, 3


def chromosome(n=400_000, seed=6):
    rng = np.random.default_rng(seed)
    motif = rng.integers(0, 4, 37)
    bases = rng.integers(0, 4, n)
    for start in rng.integers(0, n - 40, n // 80):
        bases[start : start + 37] = motif
    return bases.astype(np.int64)


data = chromosome()
rng = np.random.default_rng(7)


def get_batch():
    at = rng.integers(0, len(data) - context - 1, batch_size)
    window = torch.from_numpy(np.stack([data[a : a + context + 1] for a in at]))
    return window[:, :-1], window[:, 1:]


model = DnaLM(context=context)
decay = [p for p in model.parameters() if p.dim() > 1]
rest = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.95), fused=True
)
max_steps = int(os.environ.get("PLANTED_STEPS", 110))
losses = []
t0 = time.time()
for step in range(max_steps):
    for group in optimizer.param_groups:
        group["lr"] = 6e-4 * min(1.0, (step + 1) / 20)
    x, y = get_batch()
    loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {losses[-1]:.4f}", flush=True)
dt = time.time() - t0
print(f"{max_steps} steps in {dt:.2f}s, loss {sum(losses[-10:]) / len(losses[-10:]):.4f}")
