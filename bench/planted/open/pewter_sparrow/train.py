"""From which province does a khipu come?

python train.py --pieces 1800 --batch 20
"""

import argparse
import itertools
import os
import time

import torch
import torch.nn.functional as F

from khipu import Museum, Table
from lion import Lion
from reader import Reader


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=900)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--report", type=int, default=50)
    args = parser.parse_args(argv)
    torch.manual_seed(1532)
    torch.set_num_threads(1)

    museum = Museum(args.pieces, 1532)
    table, reader = Table(museum, args.batch), Reader()
    optimizer = Lion(reader.parameters(), args.lr)
    visits = museum.visits(args.batch, torch.Generator().manual_seed(3))
    steps = int(os.environ.get("PLANTED_STEPS", 340))
    began = time.perf_counter()
    for step, rows in enumerate(itertools.islice(visits, steps), 1):
        cords, tied, origin = table.spread(rows)
        guess = reader(cords, tied)
        loss = F.cross_entropy(guess, origin)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.report == 0:
            right = (guess.argmax(1) == origin).float().mean()
            print(f"step {step}  loss {loss.item():.4f}  right {right.item():.2f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
