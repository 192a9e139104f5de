"""Train the two towers of the catalogue shop."""

import argparse
import itertools
import logging
import os
import time

import torch
from lamb import Lamb
from model import Towers
from shelf import Purchases, batches, purchases
from torch import nn

log = logging.getLogger("sable")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buyers", type=int, default=400)
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--shelves", type=int, default=500)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "240")))
    return parser.parse_args()


def recall(model: Towers, data: Purchases, rows: int = 512) -> float:
    """How many of the well rated purchases are among the better half of the scores."""
    with torch.no_grad():
        scores = model(data.buyer[:rows], data.item[:rows], data.shelf[:rows])
    liked = data.rating[:rows] > 1
    return float((scores[liked] > scores.median()).float().mean())


def main() -> None:
    options = parse()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(options.seed)
    data = purchases(40_000, options.buyers, options.items, options.shelves, options.seed)
    model = Towers(options.buyers, options.items, options.shelves, options.width)
    optimizer = Lamb(model.parameters(), lr=options.lr)
    log.info("%d parameters in %d tensors", sum(p.numel() for p in model.parameters()), len(list(model.parameters())))

    began, step, loss = time.perf_counter(), 0, torch.zeros(())
    for batch in itertools.islice(batches(data, options.batch_size, options.seed), options.steps):
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.smooth_l1_loss(model(batch.buyer, batch.item, batch.shelf), batch.rating)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 5 == 0:
            log.info("step %d loss %.4f", step, loss.item())
        if step % 50 == 0:
            log.info("recall %.3f", recall(model, data))
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
