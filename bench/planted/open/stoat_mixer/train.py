import os
import time

import torch
from torch.nn.functional import cross_entropy

from mixer import Mixer
from scenes import scenes

BATCH, LR = 16, 1e-3
STEPS = int(os.environ.get("PLANTED_STEPS", 220))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    pictures, kinds = scenes(2000, 32, 10, seed=2)
    model = Mixer()
    opt = torch.optim.AdamW(model.parameters(), lr=LR, fused=True)
    g = torch.Generator().manual_seed(3)
    start = time.time()
    for step in range(STEPS):
        rows = torch.randint(0, len(pictures), (BATCH,), generator=g)
        loss = cross_entropy(model(pictures[rows]), kinds[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 65 == 0:
            print(f"{step:4d}  {loss.item():.4f}")
    print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
