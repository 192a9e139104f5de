"""accelerate launch tune.py, or plainly python tune.py."""

import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from strings.budget import cuts
from strings.network import Lute
from strings.tones import collate, plucks
from torch.utils.data import DataLoader

FRAMES, PARTIALS, WIDTH, LAYERS, BATCH, SEED = 32, 20, 48, 4, 48, 31
STEPS = int(os.environ.get("PLANTED_STEPS", 350))


def parts(batch: dict[str, torch.Tensor], count: int):
    """The cuts of a batch, each with its share of the whole."""
    whole = len(batch["truth"])
    for cut in zip(*[column.tensor_split(count) for column in batch.values()], strict=True):
        yield *cut, len(cut[0]) / whole


def forever(loader):
    while True:
        yield from loader


def main() -> None:
    set_seed(SEED)
    accelerator = Accelerator(cpu=True)
    data = plucks(1600, FRAMES, PARTIALS, SEED)
    loader = DataLoader(data, BATCH, shuffle=True, drop_last=True, collate_fn=collate)
    model = Lute(PARTIALS, WIDTH, LAYERS)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    count = cuts(BATCH, FRAMES, WIDTH, LAYERS)
    began = time.perf_counter()
    for step, batch in zip(range(1, STEPS + 1), forever(loader)):
        total = 0.0
        for spectra, truth, share in parts(batch, count):
            loss = torch.nn.functional.mse_loss(model(spectra), truth) * share
            accelerator.backward(loss)
            total += loss.detach()
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            accelerator.print(f"{step:>5} {total.item():.5f}", flush=True)
    accelerator.print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {total.item():.6f}")


if __name__ == "__main__":
    main()
