import os
import time

import torch
from config import Config
from data import get_batch, make_script
from model import GPT

config = Config()
max_iters = int(os.environ.get("PLANTED_STEPS", config.max_iters))
torch.manual_seed(config.seed)
script = make_script(200_000, config.vocab_size, config.seed)
generator = torch.Generator().manual_seed(config.seed)
model = GPT(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=config.weight_decay, fused=True)

t0 = time.perf_counter()
for it in range(1, max_iters + 1):
    x, y = get_batch(script, config.block_size, config.batch_size, generator)
    loss = model(x, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % config.log_interval == 0:
        print(f"iter {it}: loss {loss.item():.4f}", flush=True)
print(f"{max_iters} steps in {time.perf_counter() - t0:.2f} s, loss {loss.item():.6f}")
