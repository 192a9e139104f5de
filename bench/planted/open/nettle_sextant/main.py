"""Tells the species of orb weavers from the webs they spin."""

import os
import time

import torch
from torch import nn

from net import WebNet
from shelf import Shelf
from webs import FEATURES, SPECIES, collect


class Trainer:
    def __init__(self, shelf, batch=24, lr=1e-3):
        self.shelf, self.batch = shelf, batch
        self.net = WebNet(FEATURES, SPECIES)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr, weight_decay=0.01, fused=True)
        self.plan = torch.optim.lr_scheduler.LinearLR(self.opt, 0.1, 1.0, 40)
        self.step, self.loss = 0, None

    def one(self, x, ties, there, species):
        loss = nn.functional.cross_entropy(self.net(x, ties, there), species, label_smoothing=0.05)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 2.0)
        self.opt.step()
        self.plan.step()
        self.step, self.loss = self.step + 1, loss.detach()

    def train(self, steps):
        while True:
            for batch in self.shelf.batches(self.batch):
                self.one(*batch)
                if self.step % 40 == 0:
                    print(f"[{self.step}] loss {self.loss:.4f}", flush=True)
                if self.step == steps:
                    return


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    trainer = Trainer(Shelf(collect(2400, seed=5), seed=6))
    steps = int(os.environ.get("PLANTED_STEPS", 800))
    began = time.perf_counter()
    trainer.train(steps)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {trainer.loss:.5f}")


if __name__ == "__main__":
    main()
