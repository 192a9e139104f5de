"""Map the channels of an estuary."""

import argparse
import logging
import os
import time

import torch
from losses import ChannelLoss
from scenes import Scenes
from torch.utils.data import DataLoader
from unet import UNet

log = logging.getLogger("estuary")


def intersection_over_union(scores: torch.Tensor, truth: torch.Tensor) -> float:
    found, real = scores > 0, truth > 0.5
    return float((found & real).sum() / (found | real).sum().clamp_min(1))


class Trainer:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        order = torch.Generator().manual_seed(options.seed)
        self.train = DataLoader(Scenes(64, options.size, 1), options.batch_size, shuffle=True, generator=order)
        self.valid = DataLoader(Scenes(16, options.size, 2), 16)
        self.model = UNet(5, options.width)
        self.criterion = ChannelLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr)
        self.step, self.loss, self.best = 0, 0.0, 0.0

    def fit(self) -> None:
        while self.step < self.options.steps:
            for image, mask in self.train:
                self.model.train()
                self.optimizer.zero_grad()
                scores = self.model(image)
                loss = self.criterion(scores, mask)
                loss.backward()
                self.optimizer.step()
                self.step += 1
                self.loss = loss.item()
                parts = " ".join(f"{name} {value:.3f}" for name, value in self.criterion.parts.items())
                log.info("%d: %.4f (%s) iou %.3f", self.step, self.loss, parts, intersection_over_union(scores, mask))
                if self.step % self.options.validate_every == 0:
                    self.validate()
                if self.step >= self.options.steps:
                    return

    @torch.no_grad()
    def validate(self) -> None:
        self.model.eval()
        scores = [intersection_over_union(self.model(image), mask) for image, mask in self.valid]
        mean = sum(scores) / len(scores)
        self.best = max(self.best, mean)
        log.info("validation iou %.3f, best %.3f", mean, self.best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=56)
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--validate-every", type=int, default=25)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "95")))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    trainer = Trainer(parser.parse_args())
    began = time.perf_counter()
    trainer.fit()
    print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {trainer.loss:.6f}")


if __name__ == "__main__":
    main()
