import json
import os
import sys
import time
from types import SimpleNamespace

import torch
from torch.nn import functional as F

from staging.encoder import SleepStager
from staging.nights import STAGES, record


def main(path):
    with open(path) as f:
        cfg = SimpleNamespace(**json.load(f))
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    generator = torch.Generator().manual_seed(cfg.seed + 1)
    signals, stages = record(cfg.nights, cfg.shortest, cfg.longest, cfg.channels, generator)
    model = SleepStager(cfg.channels, cfg.width, cfg.heads, cfg.depth, cfg.longest, STAGES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    steps = int(os.environ.get("PLANTED_STEPS", cfg.steps))
    start = time.time()
    for step in range(steps):
        chosen = torch.randint(0, cfg.nights, (cfg.batch,), generator=generator)
        x, y = signals[chosen], stages[chosen]
        logits = model(x, y >= 0)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"[{step:4d}] cross entropy {loss.item():.4f}")
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "base.json")
