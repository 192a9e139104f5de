"""Tell the tectonic setting of a basalt from its composition."""

import argparse
import logging
import os
import time

import torch
from memory import resident_megabytes
from model import RowNet
from table import OXIDES, SETTINGS, samples
from torch import nn
from torch.utils.data import DataLoader

log = logging.getLogger("basalt")


class Trainer:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        order = torch.Generator().manual_seed(options.seed)
        self.train = DataLoader(samples(2048, 1), options.batch_size, shuffle=True, drop_last=True, generator=order)
        self.valid = DataLoader(samples(256, 2), 256)
        self.model = RowNet(len(OXIDES), options.width, options.heads, options.stages, options.layers, len(SETTINGS))
        decayed = [p for p in self.model.parameters() if p.dim() > 1]
        plain = [p for p in self.model.parameters() if p.dim() <= 1]
        self.optimizer = torch.optim.AdamW([{"params": decayed}, {"params": plain, "weight_decay": 0.0}], lr=options.lr)
        self.step, self.loss = 0, 0.0

    def fit(self) -> None:
        while self.step < self.options.steps:
            for shares, settings in self.train:
                self.model.train()
                loss = nn.functional.cross_entropy(self.model(shares), settings, label_smoothing=0.1)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.step, self.loss = self.step + 1, loss.item()
                if self.step % 5 == 0:
                    log.info("step %d loss %.4f, %.0f MB", self.step, self.loss, resident_megabytes())
                if self.step % 40 == 0:
                    log.info("validation accuracy %.3f", self.validate())
                if self.step >= self.options.steps:
                    break

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        return sum(float((self.model(shares).argmax(1) == settings).float().mean()) for shares, settings in self.valid) / len(self.valid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "170")))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    trainer = Trainer(parser.parse_args())
    began = time.perf_counter()
    trainer.fit()
    print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {trainer.loss:.6f}")


if __name__ == "__main__":
    main()
