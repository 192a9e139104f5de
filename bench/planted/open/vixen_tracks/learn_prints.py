import argparse
import os
import time

import torch

from embed import PrintEmbedder
from mining import batch_hard
from tracks import PawPrints

parser = argparse.ArgumentParser(description="Tell foxes apart by their paw prints")
parser.add_argument("--foxes", type=int, default=200)
parser.add_argument("--per-batch", type=int, default=48, help="foxes in a batch")
parser.add_argument("--prints", type=int, default=4, help="prints of each fox in a batch")
parser.add_argument("--size", type=int, default=96)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--embedding", type=int, default=64)
parser.add_argument("--iterations", type=int, default=200)
parser.add_argument("--lr", type=float, default=1e-3)


def main(args):
    torch.set_num_threads(1)
    torch.manual_seed(8)
    prints = PawPrints(args.foxes, 12, args.size, torch.Generator().manual_seed(9))
    embedder = PrintEmbedder(args.size, args.hidden, args.embedding)
    optimizer = torch.optim.Adam(embedder.parameters(), lr=args.lr)
    iterations = int(os.environ.get("PLANTED_STEPS", args.iterations))
    begin = time.time()
    for iteration in range(iterations):
        x, identity = prints.draw(args.per_batch, args.prints)
        loss = batch_hard(embedder(x), identity)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (iteration + 1) % 50 == 0:
            print(f"iteration {iteration + 1} triplet {loss.item():.4f}")
    print(f"{iterations} steps in {time.time() - begin:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(parser.parse_args())
