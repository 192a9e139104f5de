import argparse
import os
import time

import torch

from core import DEPTHS, TAXA, bog, drill
from strata import Chronicle


def options():
    parser = argparse.ArgumentParser(description="Learns to date peat from its pollen.")
    parser.add_argument("--cores", type=int, default=3, help="drilled for each step")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--strata", type=int, default=12)
    parser.add_argument("--rate", type=float, default=6e-4)
    parser.add_argument("--clip", type=float, default=1.0)
    return parser.parse_args()


def train(o, steps):
    g = torch.Generator().manual_seed(91)
    history, net = bog(g), Chronicle(TAXA, o.width, o.strata)
    params = list(net.parameters())
    optimizer = torch.optim.Adam(params, o.rate, fused=True)
    for step in range(1, steps + 1):
        counts, age = drill(history, o.cores, g)
        loss = (net(counts) - age).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, o.clip)
        optimizer.step()
        if step % 30 == 0:
            print(f"{step}/{steps} off by {loss.item() * 11000:.0f} years", flush=True)
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(90)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    began = time.perf_counter()
    loss = train(options(), steps)
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss:.5f}")
