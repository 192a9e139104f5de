import argparse
import os
import tempfile
import time

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from clips.archive import record
from clips.dataset import CallDataset
from clips.model import CallNet


def cycle(loader):
    while True:
        yield from loader


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 260)))
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--clip", type=int, default=1920)
    p.add_argument("--lr", type=float, default=5e-4)
    args = p.parse_args()

    torch.manual_seed(40)
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        names = record(folder, count=400, species=6, seed=13)
        data = CallDataset(names, clip=args.clip)
        loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(2))
        net = CallNet(args.clip, species=6)
        opt = torch.optim.Adam(net.parameters(), lr=args.lr)
        begin = time.time()
        for step, (wave, species) in zip(range(1, args.steps + 1), cycle(loader)):
            loss = cross_entropy(net(wave), species)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 100 == 0:
                print(f"{step:5d} {loss.item():.4f}")
        print(f"{args.steps} steps in {time.time() - begin:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
