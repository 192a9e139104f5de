import argparse
import os
import time

import torch
import torch.nn.functional as F

from charlm.corpus import Corpus
from charlm.net import CharConv


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=int(os.environ.get("PLANTED_STEPS", 1500)))
    p.add_argument("--batch", type=int, default=48)
    p.add_argument("--block", type=int, default=128)
    p.add_argument("--lr", type=float, default=3e-3)
    return p.parse_args()


def main():
    args = parse()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(6)
    corpus = Corpus()
    model = CharConv(len(corpus.alphabet))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    t0 = time.time()
    for it in range(args.iters):
        x, y = corpus.get_batch(args.batch, args.block, gen)
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(f"iter {it}: {loss.item():.3f}")
    print(f"{args.iters} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
