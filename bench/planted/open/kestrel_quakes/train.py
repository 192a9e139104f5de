"""Trains an onset picker on synthetic earthquakes: python train.py [conf.yaml]"""

import sys
import time

import torch
import torch.nn.functional as F

from catalogue import Catalogue
from feed import Feed
from network import Picker, onset_error
from settings import Settings


class Run:
    def __init__(self, settings: Settings):
        torch.manual_seed(settings.seed)
        self.settings = settings
        self.feed = Feed(Catalogue(settings), settings)
        self.model = Picker(settings.channels, settings.depth)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, settings.lr, total_steps=max(settings.steps, 10) + 1)
        self.running = None

    def step(self, waves, curves) -> float:
        logits = self.model(waves)
        loss = F.binary_cross_entropy_with_logits(logits, curves, pos_weight=torch.tensor(8.0))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        value = loss.item()
        self.running = value if self.running is None else 0.95 * self.running + 0.05 * value
        return value

    @torch.no_grad()
    def probe(self, waves, curves) -> float:
        self.model.eval()
        error = onset_error(self.model(waves), curves).item()
        self.model.train()
        return error

    def fit(self):
        began = time.time()
        done, value = 0, float("nan")
        for waves, curves in self.feed:
            value = self.step(waves, curves)
            done += 1
            if done % self.settings.print_every == 0:
                print(f"step {done} loss {value:.4f} running {self.running:.4f}", flush=True)
            if done % self.settings.probe_every == 0:
                print(f"step {done} onset error {self.probe(waves, curves):.1f} samples", flush=True)
            if done >= self.settings.steps:
                break
        seconds = time.time() - began
        self.feed.close()
        print(f"{done} steps in {seconds:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    Run(Settings.load(sys.argv[1] if len(sys.argv) > 1 else "conf.yaml")).fit()
