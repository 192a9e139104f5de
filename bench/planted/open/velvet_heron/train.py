import os
import time
from pathlib import Path

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader

from dataset import CommandClips

HERE = Path(__file__).resolve().parent
STEPS = int(os.environ.get("PLANTED_STEPS", "500"))


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.depth = nn.Conv2d(cin, cin, 3, stride=2, padding=1, groups=cin, bias=False)
        self.point = nn.Conv2d(cin, cout, 1, bias=False)
        self.norm = nn.BatchNorm2d(cout)

    def forward(self, x):
        return torch.relu(self.norm(self.point(self.depth(x))))


class KeywordNet(nn.Module):
    def __init__(self, classes, width, dropout):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(Block(width, 2 * width), Block(2 * width, 4 * width))
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(4 * width, classes))

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Experiment:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg["seed"])
        t = cfg["train"]
        self.train_set = CommandClips(cfg, "train", cfg["seed"])
        self.val_set = CommandClips(cfg, "val", cfg["seed"] + 100)
        gen = torch.Generator().manual_seed(cfg["seed"])
        self.loader = DataLoader(self.train_set, t["batch_size"], shuffle=True, drop_last=True, generator=gen)
        self.val_loader = DataLoader(self.val_set, 32)
        self.model = KeywordNet(cfg["data"]["classes"], **cfg["model"])
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=t["lr"], weight_decay=t["weight_decay"])
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        self.model.train()
        return hits / len(self.val_set)

    def run(self):
        t = self.cfg["train"]
        step, loss = 0, None
        start = time.perf_counter()
        while step < STEPS:
            for x, y in self.loader:
                loss = self.criterion(self.model(x), y)
                self.opt.zero_grad(set_to_none=True)
                loss.backward()
                self.opt.step()
                step += 1
                if step % t["log_every"] == 0:
                    print(f"step {step:4d}  loss {loss.item():.4f}")
                if step % t["eval_every"] == 0:
                    print(f"step {step:4d}  val acc {self.validate():.3f}")
                if step >= STEPS:
                    break
        print(f"{step} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    Experiment(yaml.safe_load((HERE / "config.yaml").read_text())).run()
