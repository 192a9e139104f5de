import math
import time

import torch
from torch import nn

from .config import Config
from .shape import Procrustes
from .stones import collect


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Study:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.outline, self.marks = collect(cfg)
        self.net = nn.Sequential(
            nn.Linear(2 * cfg.harmonics, cfg.width),
            *[Residual(cfg.width) for _ in range(cfg.depth)],
            nn.Linear(cfg.width, cfg.landmarks * 3),
            nn.Unflatten(1, (cfg.landmarks, 3)),
        )
        self.optimizer = torch.optim.AdamW(self.net.parameters(), cfg.rate, weight_decay=0.01)
        self.criterion = Procrustes("full")
        self.hooks = [getattr(self, name) for name in cfg.hooks]

    def warm_up(self, step, _):
        for group in self.optimizer.param_groups:
            group["lr"] = self.cfg.rate * min(1, step / 100) * (0.55 + 0.45 * math.cos(step / 900))

    def progress(self, step, loss):
        if step % 50 == 0:
            print(f"{step:5d}  procrustes {loss.item():.5f}", flush=True)

    def learn(self, rows):
        loss = self.criterion(self.net(self.outline[rows]), self.marks[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        began = time.perf_counter()
        for step in range(1, self.cfg.steps + 1):
            loss = self.learn(torch.randint(self.cfg.stones, (self.cfg.batch,)))
            for hook in self.hooks:
                hook(step, loss)
        print(f"{self.cfg.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    Study(Config()).run()
