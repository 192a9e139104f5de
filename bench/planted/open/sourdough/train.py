# bread-bot: a tiny GPT on recipes, nanoGPT style
import math
import os
import time

import torch

from gpt import GPT
from pieces import Pieces, chapter

# ---------------------------------------------------------------- settings
max_iters = int(os.environ.get("PLANTED_STEPS", 260))
batch_size = 8
context = 96
learning_rate = 1e-3
warmup_iters = 30
log_interval = 20
grad_clip = 1.0
torch.manual_seed(1337)
torch.set_num_threads(1)

# ---------------------------------------------------------------- data
pieces = Pieces()
chapters = [chapter(s) for s in range(36)]
print(f"{sum(map(len, chapters)):,} characters in {len(chapters)} chapters, {len(pieces)} pieces")


def get_batch():
    picks = torch.randint(len(chapters), (batch_size,)).tolist()
    xs, ys = [], []
    for pick in picks:
        ids = torch.tensor(pieces.encode(chapters[pick]))
        at = torch.randint(len(ids) - context - 1, (1,)).item()
        xs.append(ids[at : at + context])
        ys.append(ids[at + 1 : at + 1 + context])
    return torch.stack(xs), torch.stack(ys)


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    return 0.1 * learning_rate + 0.45 * learning_rate * (1 + math.cos(math.pi * (it - warmup_iters) / max(1, max_iters - warmup_iters)))


# ---------------------------------------------------------------- model
model = GPT(len(pieces), context)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
print(f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e3:.0f}k")

t0 = start = time.perf_counter()
X, Y = get_batch()
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    logits, loss = model(X, Y)
    X, Y = get_batch()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % log_interval == 0:
        t1 = time.perf_counter()
        print(f"iter {it}: loss {loss.item():.4f}, time {(t1 - t0) * 1000:.0f}ms")
        t0 = t1

print(f"{max_iters} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")
