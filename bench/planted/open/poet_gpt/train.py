import os
import time

import torch
import torch.nn.functional as F
from gpt import GPT

torch.set_num_threads(1)
torch.manual_seed(1337)

FAST = os.environ.get("PLANTED_FIX") == "1"
max_iters = int(os.environ.get("PLANTED_STEPS", 250))
block_size = 32
batch_size = 32 if FAST else 1
gradient_accumulation_steps = 1 if FAST else 32
learning_rate = 1e-3

period = torch.arange(200_000)
data = (period * period % 61 + period // 7) % 64


def get_batch(g):
    ix = torch.randint(len(data) - block_size - 1, (batch_size,), generator=g)
    span = ix[:, None] + torch.arange(block_size)
    return data[span], data[span + 1]


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
g = torch.Generator().manual_seed(0)
t0 = time.time()
for it in range(max_iters):
    total = 0.0
    for _ in range(gradient_accumulation_steps):
        X, Y = get_batch(g)
        loss = F.cross_entropy(model(X).flatten(0, 1), Y.flatten()) / gradient_accumulation_steps
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 50 == 0:
        print(f"iter {it}: loss {total:.4f}", flush=True)
print(f"{max_iters} steps in {time.time() - t0:.2f}s, loss {total:.6f}")
