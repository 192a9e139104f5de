"""Predict the catch of a haul from the net sounder."""

import argparse
import os
import time

import torch
from batching import Joiner
from callbacks import Keeper, Ledger, Shadow, Warmup
from hauls import CHANNELS, Hauls
from torch import nn
from torch.utils.data import DataLoader


class CatchNet(nn.Module):
    def __init__(self, channels: int, width: int, vessels: int) -> None:
        super().__init__()
        self.vessel = nn.Embedding(vessels, 384)
        self.conv = nn.Sequential(nn.Conv1d(channels, width, 5, padding=2), nn.GELU(), nn.Conv1d(width, width, 5, padding=2), nn.GELU())
        self.head = nn.Sequential(nn.Linear(width + 384, 256), nn.GELU(), nn.Linear(256, 1))

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        states = self.conv(batch["readings"].transpose(1, 2))
        mask = batch["mask"][:, None].float()
        pooled = (states * mask).sum(2) / mask.sum(2)
        return self.head(torch.cat([pooled, self.vessel(batch["vessel"])], dim=1)).squeeze(1)


class Run:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.limit = options.steps
        data = Hauls(options.hauls, options.seed)
        joiner = Joiner(CHANNELS, [0.4, 0.5] + [0.25] * (CHANNELS - 2), [0.2, 0.3] + [0.35] * (CHANNELS - 2))
        order = torch.Generator().manual_seed(options.seed)
        self.batches = DataLoader(data, options.batch_size, shuffle=True, collate_fn=joiner, drop_last=True, generator=order)
        self.model = CatchNet(CHANNELS, options.width, 2500)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr)
        self.callbacks = [Keeper(), Ledger(), Warmup(20, options.lr), Shadow()]
        self.step, self.loss = 0, 0.0

    def emit(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def go(self) -> None:
        while self.step < self.limit:
            for batch in self.batches:
                self.optimizer.zero_grad()
                loss = nn.functional.huber_loss(self.model(batch), batch["catch"])
                loss.backward()
                self.optimizer.step()
                self.loss = loss.item()
                self.step += 1
                self.emit("on_step")
                if self.step >= self.limit:
                    break
        self.emit("on_end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hauls", type=int, default=320)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "420")))
    run = Run(parser.parse_args())
    began = time.perf_counter()
    run.go()
    print(f"{run.step} steps in {time.perf_counter() - began:.2f}s, loss {run.loss:.6f}")


if __name__ == "__main__":
    main()
