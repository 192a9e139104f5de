"""Train the traffic forecaster with Lightning Fabric."""

import json
import os
import sys
import tempfile
import time
import warnings
from itertools import islice
from pathlib import Path

import torch
from lightning.fabric import Fabric, seed_everything
from model import Forecaster
from roads import ring
from torch.utils.data import DataLoader
from traffic import Windows, speeds

warnings.filterwarnings("ignore")


def endless(loader: DataLoader):
    while True:
        yield from loader


@torch.no_grad()
def check(model, loader: DataLoader) -> float:
    """Mean absolute error on some windows after the training range."""
    model.eval()
    errors = [(model(past) - ahead).abs().mean() for past, ahead in islice(loader, 3)]
    model.train()
    return torch.stack(errors).mean().item()


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "settings.json")
    settings = json.loads(path.read_text())
    train, window = settings["train"], settings["window"]
    steps = int(os.environ.get("PLANTED_STEPS", train["steps"]))
    fabric = Fabric(accelerator="cpu", devices=1)
    seed_everything(12, verbose=False)

    roads = ring(**settings["roads"])
    fabric.print(f"{roads.sensors} sensors, {len(roads.links)} links, degrees {roads.degree_report()}")
    series = speeds(roads, **settings["series"])
    border = int(len(series) * 0.85)
    learn, held_out = Windows(series, **window, first=0, last=border), Windows(series, **window, first=border, last=len(series))
    order = torch.Generator().manual_seed(12)
    loader, control = fabric.setup_dataloaders(
        DataLoader(learn, **settings["loader"], shuffle=True, generator=order, drop_last=True),
        DataLoader(held_out, **settings["loader"]),
    )
    model = Forecaster(roads, **window, **settings["model"])
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), train["lr"]))
    fabric.print(f"{sum(p.numel() for p in model.parameters())} weights")

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for step, (past, ahead) in enumerate(islice(endless(loader), steps), start=1):
            loss = torch.nn.functional.smooth_l1_loss(model(past), ahead)
            fabric.backward(loss)
            norm = fabric.clip_gradients(model, optimizer, max_norm=train["clip"])
            optimizer.step()
            optimizer.zero_grad()
            if step % train["report_every"] == 0:
                fabric.print(f"{step} loss {loss.item():.5f} norm {norm.item():.3f}")
            if step % train["check_every"] == 0:
                fabric.print(f"{step} error {check(model, control):.5f}")
                fabric.save(Path(folder) / "last.ckpt", {"model": model, "optimizer": optimizer, "step": step})
        seconds = time.perf_counter() - began
    fabric.print(f"{steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
