"""Find the sea area of a logbook entry, on two ranks: `torchrun --nproc_per_node=2 train.py`."""

import argparse
import datetime
import logging
import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from logbooks import AREAS, WORDS, Entries, LengthGroups, joined
from model import AreaNet
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

log = logging.getLogger("yawl")


@dataclass
class Config:
    entries: int = 1536
    shortest: int = 12
    longest: int = 500
    batch_size: int = 8
    width: int = 64
    depth: int = 4
    lr: float = 1e-3
    seed: int = 36
    report_every: int = 10


class Trainer:
    def __init__(self, config: Config, rank: int, ranks: int) -> None:
        torch.manual_seed(config.seed)
        self.config, self.rank, self.ranks = config, rank, ranks
        entries = Entries(config.entries, config.shortest, config.longest, config.seed)
        groups = LengthGroups(entries.lengths, config.batch_size, rank, ranks, config.seed)
        self.loader = DataLoader(entries, batch_sampler=groups, collate_fn=joined)
        self.model = DistributedDataParallel(AreaNet(WORDS, AREAS, config.width, config.depth))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.step, self.loss, self.words = 0, 0.0, 0

    def update(self, tokens: torch.Tensor, areas: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(tokens), areas)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step, self.loss = self.step + 1, loss.item()
        self.words += int((tokens != 0).sum())

    def report(self) -> None:
        figures = torch.tensor([self.loss, float(self.words)])
        dist.all_reduce(figures)
        if self.rank == 0:
            log.info("step %d loss %.4f, %d words read", self.step, figures[0] / self.ranks, int(figures[1]))

    def fit(self, steps: int) -> float:
        while self.step < steps:
            for tokens, areas in self.loader:
                self.update(tokens, areas)
                if self.step % self.config.report_every == 0:
                    self.report()
                if self.step == steps:
                    break
        final = torch.tensor(self.loss)
        dist.all_reduce(final)
        return float(final) / self.ranks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "260")))
    parser.add_argument("--lr", type=float, default=Config.lr)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=5))
    try:
        trainer = Trainer(Config(lr=options.lr), dist.get_rank(), dist.get_world_size())
        began = time.perf_counter()
        loss = trainer.fit(options.steps)
        if trainer.rank == 0:
            print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}", flush=True)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
