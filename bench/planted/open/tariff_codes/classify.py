"""Classify customs declarations by tariff code.

python classify.py --batch-size 32 --dim 96
"""

import argparse
import itertools
import logging
import os
import sys
import time
from collections import deque

import torch
from features import NgramHasher
from stream import GOODS, DeclarationStream
from torch import nn
from torch.utils.data import DataLoader

log = logging.getLogger("tariff")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "520")))
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--buckets", type=int, default=40_000)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--report-every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=12)
    return parser.parse_args()


class BagClassifier(nn.Module):
    def __init__(self, buckets: int, dim: int, hidden: int, codes: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(buckets, dim, mode="mean")
        self.body = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.ReLU())
        self.code = nn.Linear(hidden, codes)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.code(self.body(self.bag(indices, offsets)))


class Report:
    """Running figures, printed in a table."""

    def __init__(self, every: int, span: int = 50) -> None:
        self.every, self.losses, self.hits = every, deque(maxlen=span), deque(maxlen=span)

    def add(self, step: int, loss: float, hits: float) -> None:
        self.losses.append(loss)
        self.hits.append(hits)
        if step % self.every == 0:
            print(f"{step:6d} | loss {self.loss:8.4f} | hits {sum(self.hits) / len(self.hits):6.3f}", flush=True)
            sys.stdout.flush()

    @property
    def loss(self) -> float:
        return sum(self.losses) / len(self.losses)


def updates(model, optimizer, batches):
    """One update for each batch that is asked for."""
    criterion = nn.CrossEntropyLoss()
    for indices, offsets, codes in batches:
        optimizer.zero_grad()
        scores = model(indices, offsets)
        loss = criterion(scores, codes)
        loss.backward()
        optimizer.step()
        yield loss.item(), float((scores.detach().argmax(1) == codes).float().mean())


def main() -> None:
    options = parse()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(options.seed)
    stream = DeclarationStream(options.seed, options.batch_size, NgramHasher(buckets=options.buckets))
    loader = DataLoader(stream, batch_size=None)
    model = BagClassifier(options.buckets, options.dim, options.hidden, len(GOODS))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    log.info("%d parameters", sum(p.numel() for p in model.parameters()))
    report = Report(options.report_every)
    began = time.perf_counter()
    for step, (loss, hits) in enumerate(itertools.islice(updates(model, optimizer, loader), options.steps), 1):
        report.add(step, loss, hits)
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {report.loss:.6f}")


if __name__ == "__main__":
    main()
