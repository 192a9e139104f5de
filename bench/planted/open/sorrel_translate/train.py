"""Sequence to sequence from a YAML config."""

import argparse
import os
import time
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader

from pairs import PAD, Batcher, Pairs
from translator import Translator

warnings.filterwarnings("ignore", category=UserWarning)


def noam(step: int, warmup: int) -> float:
    return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)


class Meter:
    """Words and losses since the last line."""

    def __init__(self):
        self.words = self.total = 0
        self.since = time.perf_counter()

    def add(self, wanted: torch.Tensor, loss: float) -> None:
        count = int((wanted != PAD).sum())
        self.words += count
        self.total += count * loss

    def line(self) -> str:
        now = time.perf_counter()
        text = f"loss {self.total / max(self.words, 1):.4f}, {self.words / (now - self.since):.0f} words/s"
        self.words = self.total = 0
        self.since = now
        return text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/latest"))
    args = parser.parse_args()
    config = yaml.safe_load(args.config.read_text())
    data, train = config["data"], config["train"]
    torch.set_num_threads(1)
    torch.manual_seed(config["seed"])

    pairs = Pairs(data["pairs"], data["vocab"], data["max_len"], seed=config["seed"])
    generator = torch.Generator().manual_seed(config["seed"])
    loader = DataLoader(
        pairs, batch_size=data["batch"], shuffle=True, drop_last=True, collate_fn=Batcher(data["max_len"]), generator=generator
    )
    model = Translator(vocab=data["vocab"], max_len=data["max_len"], **config["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=train["lr"], betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam(step, train["warmup"]))
    limit = int(os.environ.get("PLANTED_STEPS", train["steps"]))
    args.out.mkdir(parents=True, exist_ok=True)

    meter, step, begun = Meter(), 0, time.perf_counter()
    while step < limit:
        for source, given, wanted in loader:
            logits = model(source, given)
            loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD, label_smoothing=train["label_smoothing"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), train["clip"])
            optimizer.step()
            schedule.step()
            step += 1
            meter.add(wanted, loss.item())
            if step % train["log_every"] == 0:
                print(f"step {step}: {meter.line()}")
            if step >= limit:
                break
    seconds = time.perf_counter() - begun
    torch.save(model.state_dict(), args.out / "model.pt")
    print(f"{step} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
