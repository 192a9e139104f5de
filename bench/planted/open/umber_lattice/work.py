"""Learns to go on with a strip of bobbin lace."""

import os
import time

import torch
from torch import nn

from lace import WORDS, Pillow
from lion import Lion
from maker import LaceMaker, Shape

LENGTH, BATCH = 512, 1


def learn(maker, pillow, steps):
    lion = Lion(maker.parameters())
    for n in range(1, steps + 1):
        seen, coming = pillow.batch(BATCH)
        loss = nn.functional.cross_entropy(maker(seen).flatten(0, 1), coming.flatten())
        lion.zero_grad()
        loss.backward()
        lion.step()
        yield n, loss


torch.manual_seed(13)
torch.set_num_threads(1)
steps = int(os.environ.get("PLANTED_STEPS", 420))
began = time.perf_counter()
for n, loss in learn(LaceMaker(Shape(WORDS, LENGTH)), Pillow(LENGTH, seed=13), steps):
    if n % 30 == 0:
        print(f"{n}/{steps} {loss.item():.4f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
