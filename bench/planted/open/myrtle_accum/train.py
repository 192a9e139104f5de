"""Species shares from time series of spectra, with Hugging Face Accelerate."""

import math
import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

from config import Batching, load
from plots import BANDS, DATES, SPECIES, Plots


class Mixer(nn.Module):
    """Bands and dates are mixed in turn."""

    def __init__(self, width, depth):
        super().__init__()
        self.enter = nn.Linear(BANDS, width)
        self.dates = nn.ModuleList(nn.Sequential(nn.LayerNorm(DATES), nn.Linear(DATES, DATES), nn.GELU()) for _ in range(depth))
        self.bands = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(depth)
        )
        self.leave = nn.Linear(width, SPECIES)

    def forward(self, series):
        h = self.enter(series.transpose(1, 2))
        for dates, bands in zip(self.dates, self.bands):
            h = h + dates(h.transpose(1, 2)).transpose(1, 2)
            h = h + bands(h)
        return self.leave(h.mean(1))


def divergence(logits, share):
    return nn.functional.kl_div(logits.log_softmax(1), share, reduction="batchmean")


class WarmCosine:
    def __init__(self, warmup, total):
        self.warmup, self.total = warmup, total

    def __call__(self, step):
        if step < self.warmup:
            return (step + 1) / self.warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - self.warmup) / self.total)))


class Watch:
    """Spread of the gradient's norm over the last steps."""

    def __init__(self):
        self.seen = []

    def add(self, norm):
        self.seen = [*self.seen[-63:], float(norm)]
        return torch.tensor(self.seen).std(correction=0).item()


@torch.no_grad()
def test(model, loader):
    model.eval()
    total = sum(divergence(model(b["series"]), b["share"]).item() for b in loader) / len(loader)
    model.train()
    return total


def main():
    config = load()
    set_seed(config["seed"])
    torch.set_num_threads(1)
    batching = Batching.of(config["data"])
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=batching.rounds)
    torch.set_num_threads(1)
    order = torch.Generator().manual_seed(config["seed"])
    train = DataLoader(Plots(config["data"]["plots"], 1), batch_size=batching.at_once, shuffle=True, generator=order, drop_last=True)
    held = DataLoader(Plots(200, 2), batch_size=100)
    model = Mixer(**config["model"])
    optimizer = torch.optim.AdamW(model.parameters(), config["optim"]["lr"])
    steps = int(os.environ.get("PLANTED_STEPS", 3000))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, WarmCosine(config["optim"]["warmup"], 3000))
    model, optimizer, train, held = accelerator.prepare(model, optimizer, train, held)
    watch, done, began = Watch(), 0, time.perf_counter()
    while done < steps:
        for batch in train:
            with accelerator.accumulate(model):
                loss = divergence(model(batch["series"]), batch["share"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    spread = watch.add(accelerator.clip_grad_norm_(model.parameters(), 1.0))
                optimizer.step()
                optimizer.zero_grad()
            if not accelerator.sync_gradients:
                continue
            schedule.step()
            done += 1
            if done % config["log_every"] == 0:
                accelerator.print(f"{done}: {loss.item():.4f} norm spread {spread:.4f} lr {schedule.get_last_lr()[0]:.2e}", flush=True)
            if done % 100 == 0:
                accelerator.print(f"held out {test(model, held):.4f}")
            if done == steps:
                break
    seconds = time.perf_counter() - began
    accelerator.print(f"{steps} steps in {seconds:.3f}s, loss {test(model, held):.5f}")


if __name__ == "__main__":
    main()
