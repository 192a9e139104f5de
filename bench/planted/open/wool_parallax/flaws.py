"""Finds purled and dropped stitches in pictures of swatches."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset

import yarn

F = torch.nn.functional


class Stream(IterableDataset):
    def __init__(self, source, size):
        self.source, self.size = source, size

    def __iter__(self):
        yield from self.source(self.size)


def weights(widths, draw):
    def conv(a, b, k):
        w = torch.randn(b, a, k, k, generator=draw) * (2 / (a * k * k)) ** 0.5
        return [w.requires_grad_(), torch.zeros(b, requires_grad=True)]

    body = [conv(a, b, 3) for a, b in zip([1, *widths], widths)]
    return {"body": body, "head": conv(widths[-1], 3, 1)}


def flat(tree):
    return [w for pair in (*tree["body"], tree["head"]) for w in pair]


def net(tree, x):
    for i, (w, b) in enumerate(tree["body"]):
        x = F.conv2d(x, w, b, padding=2**i, dilation=2**i).relu()
    return F.conv2d(x, *tree["head"])


def objective(tree, picture, kinds, rare=torch.tensor([0.6, 1.0, 4.0])):
    return F.cross_entropy(net(tree, picture), kinds, rare)


def train(steps, size=6):
    tree = weights([20, 20, 20, 20], torch.Generator().manual_seed(4))
    rule = torch.optim.NAdam(flat(tree), 2e-3)
    stream = iter(DataLoader(Stream(yarn.source, size), batch_size=None))
    began = time.time()
    for step in range(1, steps + 1):
        picture, kinds = next(stream)
        loss = objective(tree, picture, kinds)
        rule.zero_grad()
        loss.backward()
        rule.step()
        if step % 100 == 0:
            sys.stdout.write(f"{step:5d} swatches x{size}  {loss.item():.4f}\n")
            sys.stdout.flush()
    print(f"{steps} steps in {time.time() - began:.3f} s, loss {loss.item():.6f}")


torch.manual_seed(4)
train(int(os.environ.get("PLANTED_STEPS", 300)))
