import configparser
import os
import sys
import time

import torch

from .descent import descender, rows_for, slope
from .drafts import drawdowns, smudged
from .net import born, sizes_of


def main(path="loom.ini"):
    config = configparser.ConfigParser()
    config.read(path)
    run = config["run"]
    seed, batch = run.getint("seed"), run.getint("batch")
    torch.manual_seed(seed)
    dice = torch.Generator().manual_seed(seed)
    book = drawdowns(config["cloth"], seed)
    share = config.getfloat("cloth", "smudge")
    sizes = sizes_of(config)
    layers = born(sizes)
    move = descender(layers, run.getfloat("lr"), run.getfloat("momentum"))
    rows = rows_for(config, sizes)

    steps = int(os.environ.get("PLANTED_STEPS", 450))
    began, order = time.perf_counter(), torch.empty(0, dtype=torch.long)
    for step in range(1, steps + 1):
        if len(order) < batch:
            order = torch.randperm(len(book), generator=dice)
        pick, order = order[:batch], order[batch:]
        clean = book[pick]
        loss = slope(layers, smudged(clean, share, dice), clean, rows)
        move()
        if step % 50 == 0:
            print(f"pick {step}: {loss:.5f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
