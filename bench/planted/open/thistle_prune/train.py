import argparse
import os
import time

import torch
from prune import Pruner
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 320)))
    parser.add_argument("--sparsity", type=float, default=0.5)
    parser.add_argument("--batch", type=int, default=512)
    return parser.parse_args()


def fields(n=8192):
    weeds = torch.randn(n, 120)
    return TensorDataset(weeds, (weeds[:, :8].sum(1) > 0).long() + (weeds[:, 8] > 1).long())


def main():
    args = parse()
    torch.set_num_threads(1)
    torch.manual_seed(62)
    hidden = [nn.Linear(120, 192), nn.Linear(192, 192)]
    model = nn.Sequential(hidden[0], nn.GELU(), hidden[1], nn.GELU(), nn.Linear(192, 3))
    pruner = Pruner(hidden, args.sparsity)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(fields(), batch_size=args.batch, shuffle=True, drop_last=True)
    step, start = 0, time.time()
    while step < args.steps:
        for weeds, kind in loader:
            loss = nn.functional.cross_entropy(model(weeds), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pruner.apply()
            step += 1
            if step == args.steps:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
