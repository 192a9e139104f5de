"""Train the recommender."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch
from catalogue import Catalogue
from torch import nn
from torch.utils.data import DataLoader
from tower import VisitModel, figures
from visits import Visits


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=2400)
    parser.add_argument("--groups", type=int, default=48)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--negatives", type=int, default=7)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--report-every", type=int, default=25)
    parser.add_argument("--save-every", type=int, default=150)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "300")))
    return parser.parse_args()


def train(o: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(o.seed)
    catalogue = Catalogue(o.items, o.groups, o.seed)
    visits = Visits(catalogue, o.length, o.negatives, o.seed + 1)
    batches = iter(DataLoader(visits, o.batch_size))
    model = VisitModel(len(catalogue), o.width, 1)
    optimizer = torch.optim.Adam(model.parameters(), o.lr)
    target = torch.zeros(o.batch_size, dtype=torch.long)

    began = time.perf_counter()
    for step in range(1, o.steps + 1):
        seen, candidates = next(batches)
        scores = model(seen, candidates)
        loss = nn.functional.cross_entropy(scores, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % o.report_every == 0:
            print(step, f"loss {loss.item():.4f}", *(f"{k} {v:.3f}" for k, v in figures(scores.detach()).items()), flush=True)
        if step % o.save_every == 0:
            torch.save({"model": model.state_dict(), "step": step}, folder / f"step{step}.pt")
    print(f"{o.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        train(options(), Path(name))
