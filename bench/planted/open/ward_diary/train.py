"""Train the reader of ward diaries with accelerate."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from batching import PooledBatches, collate
from diaries import Diaries
from reader import Reader
from rounds import score
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--stays", type=int, default=4096)
parser.add_argument("--codes", type=int, default=400)
parser.add_argument("--longest", type=int, default=320)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--pool", type=int, default=64)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--seed", type=int, default=5)
parser.add_argument("--report-every", type=int, default=10)
parser.add_argument("--score-every", type=int, default=90)
parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "190")))


def endless(loader: DataLoader):
    while True:
        yield from loader


def main() -> None:
    options = parser.parse_args()
    set_seed(options.seed)
    accelerator = Accelerator(cpu=True)
    learn = Diaries(options.stays, options.codes, options.longest, options.seed)
    held_out = Diaries(128, options.codes, options.longest, options.seed + 1)
    accelerator.print(learn.summary())
    model = Reader(options.codes, options.width, options.layers, options.heads)
    optimizer = torch.optim.AdamW(model.parameters(), options.lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    model, optimizer, schedule, loader, rounds = accelerator.prepare(
        model,
        optimizer,
        schedule,
        DataLoader(learn, batch_sampler=PooledBatches(learn, options.batch_size, options.pool, options.seed), collate_fn=collate),
        DataLoader(held_out, batch_sampler=PooledBatches(held_out, options.batch_size, 8, 0), collate_fn=collate),
    )
    with tempfile.TemporaryDirectory() as folder:
        began, recent = time.perf_counter(), []
        for step, batch in enumerate(endless(loader), start=1):
            with accelerator.accumulate(model):
                risk = model(batch["codes"], batch["gaps"])
                loss = torch.nn.functional.binary_cross_entropy_with_logits(risk, batch["readmitted"])
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            recent.append(loss.detach())
            if step % options.report_every == 0:
                accelerator.print(f"{step} loss {torch.stack(recent).mean():.4f}", flush=True)
                recent.clear()
            if step % options.score_every == 0:
                accelerator.print(f"{step} concordance {score(accelerator, model, rounds):.4f}", flush=True)
                accelerator.save(accelerator.get_state_dict(model), Path(folder) / "reader.pt")
            if step == options.steps:
                break
        seconds = time.perf_counter() - began
    accelerator.print(f"{step} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
