"""Which stones does the torrent carry?"""

import json
import os
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from clips import Clips
from station import record


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide, self.norm = nn.Conv1d(width, width, 5, padding=2), nn.GroupNorm(4, width)

    def forward(self, x):
        return x + F.silu(self.norm(self.wide(x)))


def network(width, blocks, classes):
    return nn.Sequential(
        nn.Conv1d(1, width, 16, stride=8, padding=4),
        *[Block(width) for _ in range(blocks)],
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(width, classes),
    )


class Callback:
    def after(self, trainer, loss): ...


class Tell(Callback):
    def __init__(self, every):
        self.every, self.right = every, torch.zeros(())

    def after(self, trainer, loss):
        self.right += trainer.right
        if trainer.step % self.every == 0:
            print(f"{trainer.step}: loss {loss.item():.4f}, right {self.right.item() / self.every:.3f}", flush=True)
            self.right.zero_()


class Trainer:
    def __init__(self, net, loader, lr, callbacks):
        self.net, self.loader, self.callbacks, self.step = net, loader, callbacks, 0
        self.opt = torch.optim.SGD(net.parameters(), lr * 30, momentum=0.9, nesterov=True)

    def fit(self, steps):
        while True:
            for clips, grains in self.loader:
                guess = self.net(clips[:, None])
                loss = F.cross_entropy(guess, grains, label_smoothing=0.05)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.step, self.right = self.step + 1, (guess.detach().argmax(1) == grains).float().mean()
                for callback in self.callbacks:
                    callback.after(self, loss.detach())
                if self.step == steps:
                    return loss.item()


if __name__ == "__main__":
    cfg = json.loads(Path(__file__).with_name("torrent.json").read_text())
    torch.manual_seed(cfg["seed"])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="torrent") as folder:
        record(Path(folder), cfg["seed"], **cfg["station"])
        loader = DataLoader(Clips(Path(folder), cfg["clip"]), shuffle=True, drop_last=True, **cfg["loader"])
        net = network(**cfg["model"], classes=cfg["station"]["classes"])
        trainer = Trainer(net, loader, cfg["lr"], [Tell(60)])
        steps, began = int(os.environ.get("PLANTED_STEPS", cfg["steps"])), time.perf_counter()
        loss = trainer.fit(steps)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss:.5f}", flush=True)
