"""Outlines of ellipsoids in scans: python segment.py [scans.yaml]"""

import sys
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from plan import read_plan
from unet import UNet, dice
from volumes import ElasticSlices


class Session:
    def __init__(self, plan):
        torch.manual_seed(plan.seed)
        self.plan = plan
        self.loader = DataLoader(
            ElasticSlices(plan),
            batch_size=plan.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=plan.workers,
            prefetch_factor=plan.prefetch,
            persistent_workers=True,
            generator=torch.Generator().manual_seed(plan.seed),
        )
        self.net = UNet(plan.width)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=plan.lr, fused=True)

    def stream(self):
        while True:
            yield from self.loader

    def step(self, image, truth):
        logits = self.net(image)
        loss = dice(logits, truth).mean() + 0.5 * F.binary_cross_entropy_with_logits(logits, truth)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), logits.detach()

    def run(self):
        plan, value, began = self.plan, float("nan"), time.time()
        for number, (image, truth) in enumerate(self.stream(), 1):
            value, logits = self.step(image, truth)
            if number % plan.report_every == 0:
                print(f"step {number} loss {value:.4f}", flush=True)
            if number % plan.check_every == 0:
                print(f"step {number} overlap {1 - dice((logits > 0) * 40.0 - 20, truth).mean():.3f}", flush=True)
            if number >= plan.steps:
                break
        print(f"{number} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    Session(read_plan(sys.argv[1] if len(sys.argv) > 1 else "scans.yaml")).run()
