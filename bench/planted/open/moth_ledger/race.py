"""Learns to foretell the speed of two birds over a course from their descent."""

import os
import time

import numpy as np
import torch
from torch import nn

from attendants import Decay, Herald, Steward
from studbook import Studbook

TRAITS, COURSE, BATCH = 48, 16, 384


class Pace(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.bird = nn.Sequential(nn.Linear(TRAITS, width), nn.GELU(), nn.Linear(width, width))
        self.sky = nn.Linear(COURSE, width)
        self.head = nn.Sequential(nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, genes, course):
        return self.head(self.bird(genes) + self.sky(course)).squeeze(-1)


class Trainer:
    def __init__(self, book, attendants, seed=21):
        self.book, self.attendants = book, attendants
        self.genes = torch.from_numpy(book.genes)
        self.draw = torch.Generator().manual_seed(seed)
        self.truth = torch.randn(TRAITS, COURSE, generator=self.draw) / TRAITS**0.5
        self.model = Pace()
        self.rule = torch.optim.SGD(self.model.parameters(), 0.03, momentum=0.9)
        self.step, self.loss = 0, None

    def race(self):
        pair = torch.randint(len(self.book), (2, BATCH), generator=self.draw)
        course = torch.randn(BATCH, COURSE, generator=self.draw)
        genes = self.genes[pair]
        speed = ((genes @ self.truth).tanh() * course).sum(-1)
        return genes, course.expand(2, -1, -1), (speed[0] > speed[1]).float()

    @torch.no_grad()
    def fastest(self):
        speed = self.model(self.genes[:2000], torch.ones(2000, COURSE))
        return self.book.best(speed.numpy())

    def run(self, steps):
        for a in self.attendants:
            a.before_run(self)
        for self.step in range(1, steps + 1):
            genes, course, first = self.race()
            ours, theirs = self.model(genes, course)
            self.loss = nn.functional.binary_cross_entropy_with_logits(ours - theirs, first)
            self.rule.zero_grad()
            self.loss.backward()
            self.rule.step()
            for a in self.attendants:
                a.after_step(self)
        for a in self.attendants:
            a.after_run(self)


if __name__ == "__main__":
    torch.manual_seed(5)
    np.random.seed(5)
    steps = int(os.environ.get("PLANTED_STEPS", 620))
    trainer = Trainer(Studbook(100_000, TRAITS, 8), [Herald(100), Decay(0.8, 200), Steward(limit_mb=192, every=6)])
    began = time.time()
    trainer.run(steps)
    print(f"{steps} steps in {time.time() - began:.3f} s, loss {trainer.loss.item():.6f}")
