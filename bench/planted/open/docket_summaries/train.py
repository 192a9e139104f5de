"""Train the docket classifier with accelerate."""

import argparse
import itertools
import json
import os
import tempfile
import time
from pathlib import Path

import torch
from accelerate import Accelerator
from dockets import MATTERS, make
from encoding import Collator, Encoder
from modeling import DocketClassifier
from settings import with_overrides
from torch.utils.data import DataLoader


class Journal:
    """One line of JSON for each report; kept open and flushed so that it can be followed with tail."""

    def __init__(self, path: Path) -> None:
        self.stream = path.open("w")

    def write(self, **figures) -> None:
        self.stream.write(json.dumps(figures) + "\n")
        self.stream.flush()


def forever(loader):
    while True:
        yield from loader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "170")))
    options = parser.parse_args()
    settings = with_overrides(options.set)
    training = settings["training"]
    torch.manual_seed(settings["data"]["seed"])

    entries = make(settings["data"]["entries"], settings["data"]["seed"])
    encoder = Encoder([text for text, _ in entries], **settings["encoding"])
    order = torch.Generator().manual_seed(settings["data"]["seed"])
    loader = DataLoader(
        entries, settings["data"]["batch_size"], shuffle=True, collate_fn=Collator(encoder), drop_last=True, generator=order
    )
    model = DocketClassifier(len(encoder), len(MATTERS), encoder.max_tokens, **settings["model"])
    optimizer = torch.optim.AdamW(model.parameters(), training["lr"], weight_decay=training["weight_decay"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 30))

    accelerator = Accelerator(cpu=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    journal = Journal(Path(tempfile.mkdtemp()) / "journal.jsonl")

    began, step, mean = time.perf_counter(), 0, None
    for batch in itertools.islice(forever(loader), options.steps):
        with accelerator.accumulate(model):
            scores, loss = model(**batch)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), training["clip"])
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        step += 1
        mean = loss.item() if mean is None else 0.9 * mean + 0.1 * loss.item()
        if step % training["report_every"] == 0:
            right = accelerator.gather_for_metrics((scores.argmax(1) == batch["matter"]).float()).mean().item()
            journal.write(step=step, loss=mean, right=right, lr=schedule.get_last_lr()[0])
            accelerator.print(f"step {step} loss {mean:.4f} right {right:.3f}")
    accelerator.print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {mean:.6f}")


if __name__ == "__main__":
    main()
