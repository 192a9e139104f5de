import argparse
import os
import time

import torch

from models import TransE
from tablets import Prosopography, corrupt


def parse():
    p = argparse.ArgumentParser(description="Embeds who dealt with whom in the tablets")
    p.add_argument("--entities", type=int, default=60000)
    p.add_argument("--relations", type=int, default=24)
    p.add_argument("--links", type=int, default=200000)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--margin", type=float, default=4.0)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--negatives", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--steps", type=int, default=220)
    p.add_argument("--seed", type=int, default=2)
    return p.parse_args()


def train(model, batches, optimizer, args, g):
    window = []
    for step, links in batches:
        wrong = corrupt(links, args.entities, args.negatives, g)
        loss = model(links, wrong).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.append(loss.item())
        if (step + 1) % 100 == 0:
            print(f"{step + 1}: margin loss {sum(window) / len(window):.4f}")
            window.clear()
    return loss.item()


def main():
    args = parse()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    data = Prosopography(args.entities, args.relations, args.links, args.seed)
    model = TransE(args.entities, args.relations, args.dim, args.margin)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.lr)
    steps = int(os.environ.get("PLANTED_STEPS", args.steps))
    clock = time.time()
    last = train(model, zip(range(steps), data.epochs(args.batch, g)), optimizer, args, g)
    print(f"{steps} steps in {time.time() - clock:.2f}s, loss {last:.6f}")


if __name__ == "__main__":
    main()
