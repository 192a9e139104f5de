"""Species from an array of hydrophones. python train.py --epochs 200"""

import argparse
import logging
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from dataset import HydrophoneDataset
from make_data import CHANNELS, CLASSES, ensure
from network import CallNet

log = logging.getLogger("calls")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).parent / "survey")
    parser.add_argument("--epochs", type=int, default=160)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


class Trainer:
    def __init__(self, args: argparse.Namespace):
        self.args = args
        generator = torch.Generator().manual_seed(args.seed)
        data = HydrophoneDataset(ensure(args.root), args.window, args.seed)
        self.loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True, generator=generator)
        self.model = CallNet(CHANNELS, CLASSES)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, args.lr, total_steps=args.epochs * len(self.loader))
        self.limit = int(os.environ.get("PLANTED_STEPS", args.epochs * len(self.loader)))
        self.done, self.loss = 0, float("nan")

    def step(self, waves: torch.Tensor, labels: torch.Tensor) -> None:
        logits = self.model(waves)
        loss = F.cross_entropy(logits, labels, label_smoothing=0.05)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.loss = loss.item()
        self.done += 1
        right = (logits.argmax(1) == labels).float().mean().item()
        log.info("step %d loss %.4f acc %.3f lr %.2e", self.done, self.loss, right, self.schedule.get_last_lr()[0])

    def fit(self) -> None:
        start = time.perf_counter()
        for _ in range(self.args.epochs):
            for waves, labels in self.loader:
                self.step(waves, labels)
                if self.done >= self.limit:
                    break
            if self.done >= self.limit:
                break
        print(f"{self.done} steps in {time.perf_counter() - start:.2f}s, loss {self.loss:.6f}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    arguments = parse_args()
    torch.manual_seed(arguments.seed)
    Trainer(arguments).fit()
