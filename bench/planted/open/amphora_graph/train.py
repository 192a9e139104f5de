"""Attribute amphora finds to workshops."""

import argparse
import logging
import os
import time

import torch
from finds import WORKSHOPS, excavate
from likeness import Likeness, normalised
from network import WorkshopNet
from torch import nn

log = logging.getLogger("amphora")
START = time.perf_counter()


class Project:
    """Finds, graph and masks of an excavation."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.finds = excavate(options.finds, options.seed)
        self.x = torch.tensor([find.clay for find in self.finds])
        self.x = (self.x - self.x.mean(0)) / self.x.std(0)
        self.y = torch.tensor([find.workshop for find in self.finds])
        self.adjacency = normalised(Likeness(options.neighbours).edges(self.finds), len(self.finds))
        chance = torch.rand(len(self.finds), generator=torch.Generator().manual_seed(options.seed))
        self.train, self.valid = chance < 0.3, chance > 0.7
        log.info("%d finds, %d neighbours in the graph", len(self.finds), self.adjacency._nnz())


class Stopper:
    """Stops when the validation has not improved for long."""

    def __init__(self, patience: int) -> None:
        self.patience, self.best, self.since = patience, 0.0, 0

    def __call__(self, score: float) -> bool:
        self.since = 0 if score > self.best else self.since + 1
        self.best = max(self.best, score)
        return self.since > self.patience


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finds", type=int, default=1500)
    parser.add_argument("--neighbours", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "150")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(options.seed)
    project = Project(options)
    model = WorkshopNet(project.x.shape[1], options.width, options.depth, WORKSHOPS, options.dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, weight_decay=5e-4)
    stopper = Stopper(patience=1000)

    loss = torch.zeros(())
    for step in range(1, options.steps + 1):
        model.train()
        optimizer.zero_grad()
        scores = model(project.x, project.adjacency)
        loss = nn.functional.cross_entropy(scores[project.train], project.y[project.train])
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            model.eval()
            with torch.no_grad():
                right = model(project.x, project.adjacency).argmax(1) == project.y
            score = float(right[project.valid].float().mean())
            log.info("step %d loss %.4f validation %.3f", step, loss.item(), score)
            if stopper(score):
                break
    print(f"{step} steps in {time.perf_counter() - START:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
