"""python -m sphere.train [settings.ini]"""

import sys
import time
from pathlib import Path

import torch

from .fields import Sampler, simulate
from .harmonics import Grid
from .model import Forecaster
from .settings import Settings


def area_error(guess: torch.Tensor, truth: torch.Tensor, grid: Grid) -> torch.Tensor:
    return ((guess - truth) ** 2 * grid.cell_weights).mean()


@torch.no_grad()
def check(model: Forecaster, sampler: Sampler, grid: Grid) -> float:
    model.eval()
    before, after = sampler.held_out()
    error = area_error(model(before), after, grid).item()
    model.train()
    return error


def main(path: Path) -> None:
    settings = Settings.load(path)
    torch.manual_seed(settings.seed)
    grid = Grid(settings.latitudes, settings.longitudes)
    sampler = Sampler(simulate(settings, grid), settings)
    model = Forecaster(grid, settings.channels, settings.truncations)
    optimizer = torch.optim.AdamW(model.parameters(), settings.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=max(settings.steps, 10))

    began = time.perf_counter()
    for step in range(1, settings.steps + 1):
        before, after = sampler.draw()
        loss = area_error(model(before), after, grid)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % settings.report == 0:
            print(f"step {step} loss {loss.item():.5f} rate {schedule.get_last_lr()[0]:.2e}", flush=True)
        if step % settings.check == 0:
            print(f"step {step} held out {check(model, sampler, grid):.5f}", flush=True)
    seconds = time.perf_counter() - began
    print(f"{settings.steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "settings.ini"))
