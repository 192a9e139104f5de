"""Train the shard classifier."""

import argparse
import json
import logging
import os
import tempfile
import time
from pathlib import Path

import torch
from feeding import Feed
from network import ShardNet
from shards import KINDS
from torch import nn

log = logging.getLogger("shards")


class Meter:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float, count: int) -> None:
        self.total += value * count
        self.count += count

    @property
    def mean(self) -> float:
        return self.total / max(self.count, 1)


class Trainer:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        torch.manual_seed(options.seed)
        self.options, self.folder = options, folder
        self.reader = Feed(count=options.count, batch_size=options.batch_size).open()
        self.model = ShardNet(KINDS, options.width)
        self.optimizer = torch.optim.SGD(self.model.parameters(), options.lr, momentum=0.9, nesterov=True)
        self.step, self.epoch, self.history = 0, 0, []

    def run_epoch(self) -> float:
        loss_meter, hit_meter = Meter(), Meter()
        self.model.train()
        for images, kinds in self.reader.epoch(self.epoch):
            scores = self.model(images)
            loss = nn.functional.cross_entropy(scores, kinds)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            loss_meter.add(loss.item(), len(kinds))
            hit_meter.add(float((scores.argmax(1) == kinds).float().mean()), len(kinds))
            self.step += 1
            if self.step >= self.options.steps:
                break
        log.info("epoch %d: loss %.4f, accuracy %.3f", self.epoch, loss_meter.mean, hit_meter.mean)
        self.epoch += 1
        return loss_meter.mean

    def save(self, loss: float) -> None:
        self.history.append({"epoch": self.epoch, "loss": loss})
        (self.folder / "history.json").write_text(json.dumps(self.history))
        torch.save(self.model.state_dict(), self.folder / f"epoch{self.epoch:02d}.pt")

    def fit(self) -> float:
        loss = 0.0
        while self.step < self.options.steps:
            loss = self.run_epoch()
            self.save(loss)
        return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "48")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(options, Path(folder))
        began = time.perf_counter()
        loss = trainer.fit()
        print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
