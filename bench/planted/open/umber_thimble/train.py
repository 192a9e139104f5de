"""Learns to tell which stretches of rings overlap, for cross-dating beams."""

import os
import tempfile
import time
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader

from cores import Overlaps, saw_beams
from encoder import RingEncoder, columns


@dataclass
class Config:
    cores: int = 1200
    rings: int = 1100
    stretch: int = 768
    shift: int = 48
    rounds: int = 16
    batch: int = 96
    channels: int = 32
    out: int = 64
    warmth: float = 0.1
    rate: float = 1e-3
    seed: int = 5
    steps: int = field(default_factory=lambda: int(os.environ.get("PLANTED_STEPS", 600)))


class Trainer:
    def __init__(self, cfg: Config, path: str):
        self.cfg = cfg
        self.data = Overlaps(path, cfg.stretch, cfg.shift, cfg.rounds, cfg.seed)
        self.loader = DataLoader(self.data, cfg.batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(cfg.seed))
        self.model = RingEncoder(cfg.channels, cfg.out)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), cfg.rate)
        self.step, self.losses = 0, []

    def batches(self):
        while True:
            yield from self.loader

    def loss_of(self, batch):
        early, late = self.model(columns(batch["early"])), self.model(columns(batch["late"]))
        likeness = early @ late.T / self.cfg.warmth
        truth = torch.arange(len(likeness))
        both = torch.nn.functional.cross_entropy(likeness, truth) + torch.nn.functional.cross_entropy(likeness.T, truth)
        return both / 2

    def fit(self):
        began = time.perf_counter()
        for batch in self.batches():
            loss = self.loss_of(batch)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.step += 1
            self.losses.append(loss.detach())
            if self.step % 50 == 0:
                print(f"step {self.step} loss {torch.stack(self.losses[-50:]).mean().item():.4f}", flush=True)
            if self.step == self.cfg.steps:
                break
        return time.perf_counter() - began, self.losses[-1].item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.jsonl")
        saw_beams(path, cfg.cores, cfg.rings, cfg.seed)
        trainer = Trainer(cfg, path)
    seconds, loss = trainer.fit()
    print(f"{cfg.steps} steps in {seconds:.3f} s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
