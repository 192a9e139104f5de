"""Train the riddle decoder with accumulated gradients."""

import argparse
import logging
import math
import os
import time
from pathlib import Path

import torch
from data import WORDS, micro_batches
from model import Decoder
from settings import Settings, read
from torch import nn

log = logging.getLogger("lantern")


class Accumulator:
    """Adds up the gradients of micro-batches and tells when an update is due."""

    def __init__(self, count: int) -> None:
        self.count, self.held, self.loss = count, 0, 0.0

    def add(self, loss: torch.Tensor) -> bool:
        (loss / self.count).backward()
        self.loss += loss.item() / self.count
        self.held += 1
        return self.held == self.count

    def reset(self) -> float:
        loss, self.held, self.loss = self.loss, 0, 0.0
        return loss


@torch.no_grad()
def evaluate(model: nn.Module, settings: Settings) -> float:
    tokens, following = next(micro_batches(settings.length, 16, settings.seed + 1))
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "110")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = read(options.file)
    torch.manual_seed(settings.seed)
    model = Decoder(len(WORDS), settings.length, settings.width, settings.layers, settings.heads)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / 20) * 0.5 * (1 + math.cos(math.pi * s / 500)))
    accumulator = Accumulator(settings.accumulate)
    log.info("%d tokens an update", settings.tokens_per_update)

    began, step, loss = time.perf_counter(), 0, 0.0
    for tokens, following in micro_batches(settings.length, settings.sequences, settings.seed):
        scores = model(tokens)
        if not accumulator.add(nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())):
            continue
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        loss, step = accumulator.reset(), step + 1
        if step % settings.report_every == 0:
            log.info("step %d loss %.4f lr %.2e", step, loss, schedule.get_last_lr()[0])
        if step % settings.evaluate_every == 0:
            log.info("held-out loss %.4f", evaluate(model, settings))
        if step == options.steps:
            break
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
