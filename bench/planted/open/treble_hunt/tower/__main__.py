import os
import time
from dataclasses import dataclass

import torch
from torch import nn

from .method import Tower
from .ringer import Ringer


@dataclass
class Config:
    bells: int = 8
    length: int = 1024
    nights: int = 40
    batch: int = 1
    width: int = 64
    heads: int = 4
    depth: int = 2
    rate: float = 1e-3
    seed: int = 5
    lessons: int = int(os.environ.get("PLANTED_STEPS", 300))


class Practice:
    def __init__(self, config):
        torch.manual_seed(config.seed)
        self.config, self.tower, self.ringer = config, Tower(config), Ringer(config)
        self.optimizer = torch.optim.AdamW(self.ringer.parameters(), config.rate)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, config.lessons)
        self.miss = nn.CrossEntropyLoss()

    def lesson(self):
        bells, late, goal = self.tower.lesson()
        self.optimizer.zero_grad()
        calls = self.ringer(bells, late)
        loss = self.miss(calls.flatten(0, 1), goal.flatten())
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def run(self):
        began = time.perf_counter()
        for lesson in range(1, self.config.lessons + 1):
            loss = self.lesson()
            if lesson % 100 == 0:
                print(f"lesson {lesson}: {loss.item():.4f}", flush=True)
        spent = time.perf_counter() - began
        bells, late, _ = self.tower.lesson()
        print(f"looks {self.ringer.reach(bells, late):.1f} blows back")
        print(f"{self.config.lessons} steps in {spent:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    Practice(Config()).run()
