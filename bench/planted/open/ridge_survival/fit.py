"""Fit the hazards of a cohort.

The loop is a generator: `training` yields after each update, and the caller decides what happens then.
"""

import argparse
import csv
import logging
import os
import sys
import time
from collections.abc import Iterator

import torch
from cohort import Cohort, draw
from model import HazardNet, cox_loss
from validation import Validator

log = logging.getLogger("ridge")


def penalty(model: torch.nn.Module, strength: float) -> torch.Tensor:
    """Elastic net on the first layer only."""
    weight = model.body[0].weight
    return strength * (0.5 * weight.abs().sum() + 0.5 * weight.square().sum())


def training(model, optimizer, cohort: Cohort, options: argparse.Namespace) -> Iterator[tuple[int, float]]:
    generator = torch.Generator().manual_seed(options.seed)
    step = 0
    while True:
        for batch in cohort.batches(options.batch_size, generator):
            optimizer.zero_grad()
            hazard = model(batch.features)
            loss = cox_loss(hazard, batch.times, batch.events) + penalty(model, options.l1)
            loss.backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            yield step, loss.item()


def table(trace: list[dict[str, float]]) -> None:
    writer = csv.DictWriter(sys.stdout, fieldnames=list(trace[0]), delimiter="\t")
    writer.writeheader()
    for row in trace[-3:]:
        writer.writerow({name: f"{value:.4f}" if isinstance(value, float) else value for name, value in row.items()})


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=2400)
    parser.add_argument("--features", type=int, default=48)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--l1", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "1300")))
    return parser.parse_args()


def main() -> None:
    options = parse()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    torch.manual_seed(options.seed)
    train, left_out = draw(options.people, options.features, options.seed)
    model = HazardNet(options.features, options.width, options.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    validator = Validator(left_out)
    log.info("%d people, %d left out, %.0f %% injured", len(train), len(left_out), 100 * train.events.float().mean())

    began, step, loss = time.perf_counter(), 0, 0.0
    for step, loss in training(model, optimizer, train, options):
        if step % 20 == 0:
            log.info("step %d loss %.4f", step, loss)
        if validator.due(step):
            log.info("left out: concordance %.3f", validator.measure(model, step)["concordance"])
        if step == options.steps:
            break
    seconds = time.perf_counter() - began
    if validator.trace:
        table(validator.trace)
    print(f"{step} steps in {seconds:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
