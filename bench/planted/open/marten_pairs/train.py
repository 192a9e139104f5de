"""Learn to recognise martens without names."""

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path

import torch
from curriculum import Curriculum
from encoder import Contrast, Encoder
from photos import Traps

log = logging.getLogger("marten")


class Probe:
    """How often the nearest other view is the same animal."""

    def __init__(self, traps: Traps, count: int) -> None:
        self.left, self.right = traps.views(list(range(count)))

    @torch.no_grad()
    def __call__(self, model: torch.nn.Module) -> float:
        model.eval()
        nearest = (model(self.left) @ model(self.right).T).argmax(1)
        model.train()
        return float((nearest == torch.arange(len(nearest))).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--animals", type=int, default=120_000)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--embedding", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "560")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(37)
    traps = Traps(options.animals, options.size, 37)
    curriculum = Curriculum(len(traps), 37)
    model, criterion = Encoder(options.width, options.embedding), Contrast(options.temperature)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    probe = Probe(traps, 64)
    folder = Path(tempfile.mkdtemp())

    began, loss = time.perf_counter(), torch.zeros(())
    for step in range(1, options.steps + 1):
        numbers = curriculum.draw(options.batch_size)
        left, right = traps.views(numbers)
        pairs = criterion(model(left), model(right))
        loss = pairs.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        curriculum.report(numbers, pairs.tolist())
        if step % 10 == 0:
            log.info("step %d loss %.4f", step, loss.item())
        if step % 40 == 0:
            log.info("probe %.3f", probe(model))
            torch.save(model.state_dict(), folder / f"encoder_{step:05d}.pt")
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
