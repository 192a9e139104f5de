"""Learns to tell telegraph operators apart by their "fist", for wires whose sender is unknown."""

import argparse
import os
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from archive import Wire, forge
from shifts import Draw, Shifts


class Ear(nn.Module):
    def __init__(self, width, out=48):
        super().__init__()
        self.front = nn.Conv1d(2, width, 5, stride=2, padding=2)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(2 * width, out)

    def forward(self, wire):
        heard, last = self.memory(F.gelu(self.front(wire)).mT)
        return F.normalize(self.out(torch.cat([heard.mean(1), last[-1]], 1)), dim=1)


def same_hand(code, who, heat):
    """Supervised contrast (Khosla 2020): messages of one operator attract each other."""
    own = torch.eye(len(who), dtype=torch.bool)
    near = (code @ code.mT / heat).masked_fill(own, -1e4)
    same = (who[:, None] == who) & ~own
    return -(near.log_softmax(1) * same).sum(1).div(same.sum(1)).mean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shift-length", type=int, default=20)
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--hands", type=int, default=2)
    p.add_argument("--heat", type=float, default=0.1)
    args = p.parse_args()
    torch.manual_seed(1866)
    with tempfile.TemporaryDirectory() as cellar:
        path = Path(cellar) / "wires.jsonl.gz"
        forge(path)
        wire = Wire(path)
        draw = Draw(torch.tensor(Wire(path)._open()[1]).numpy(), args.batch, 4, args.shift_length, seed=3)
        ear = Ear(args.width)
        optimizer = torch.optim.AdamW(ear.parameters(), 3e-3)
        steps, began, told = int(os.environ.get("PLANTED_STEPS", 480)), time.perf_counter(), 0
        for shift, (keying, who) in islice(Shifts(wire, draw, args.hands), steps):
            loss = same_hand(ear(keying), who, args.heat)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if shift > told:
                told = shift
                print(f"shift {shift}: loss {loss.item():.4f}", flush=True)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
