import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from .cores import Archive, Clips, Rota
from .steps import standard


class Mend(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 9, padding=4)
        self.blocks = nn.ModuleList(nn.Conv1d(channels, channels, 5, padding=2 * 2**i, dilation=2**i) for i in range(depth))
        self.leave = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        h = self.enter(x).relu()
        for block in self.blocks:
            h = h + block(h).relu()
        return x + self.leave(h)


def parse():
    p = argparse.ArgumentParser(prog="corelog")
    p.add_argument("--width", type=int, default=256)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--channels", type=int, default=40)
    p.add_argument("--depth", type=int, default=3)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=14)
    return p.parse_args()


def main():
    o = parse()
    torch.manual_seed(o.seed)
    steps = int(os.environ.get("PLANTED_STEPS", 600))
    clips = Clips(Archive(o.seed), standard(o.width), o.width, o.seed)
    loader = DataLoader(clips, batch_sampler=Rota(len(clips), o.batch, steps, o.seed), num_workers=o.workers, prefetch_factor=3)
    model = Mend(o.channels, o.depth)
    rule = torch.optim.Adam(model.parameters(), o.lr)
    began = time.time()
    for step, (dirty, clean) in enumerate(loader, 1):
        loss = nn.functional.smooth_l1_loss(model(dirty), clean)
        rule.zero_grad()
        loss.backward()
        rule.step()
        if step % 150 == 0:
            print(f"clip batch {step}, loss {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.time() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
