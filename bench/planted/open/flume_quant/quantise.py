import argparse
import os
import time

import torch

from flume.flow import forecaster, river
from flume.layers import convert

parser = argparse.ArgumentParser()
parser.add_argument("--bits", type=int, default=6)
parser.add_argument("--length", type=int, default=96)
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--lr", type=float, default=1e-3)


def finetune(opt):
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(12)
    net = convert(forecaster(opt.length), opt.bits)
    optim = torch.optim.SGD(net.parameters(), lr=opt.lr * 20, momentum=0.9)
    steps = int(os.environ.get("PLANTED_STEPS", 700))
    t0 = time.monotonic()
    for n in range(1, steps + 1):
        x, y = river(opt.batch, opt.length, generator)
        error = (net(x) - y).pow(2).mean()
        optim.zero_grad()
        error.backward()
        optim.step()
        if n % 175 == 0:
            print(f"{n}: {error.item():.5f}")
    print(f"{steps} steps in {time.monotonic() - t0:.2f}s, loss {error.item():.6f}")


if __name__ == "__main__":
    finetune(parser.parse_args())
