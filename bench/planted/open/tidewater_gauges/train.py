"""Tide forecasts for eight gauges from a stream of shards."""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from model import Forecaster
from shards import STATIONS, ensure
from stream import GaugeStream


@dataclass
class Settings:
    history: int = 96
    horizon: int = 24
    reach: int = 144
    batch: int = 32
    steps: int = 1500
    lr: float = 1e-3
    seed: int = 29
    report: int = 5
    decay: float = 0.995


class Averaged:
    """Weights averaged over the run, for the forecasts that go out."""

    def __init__(self, model: torch.nn.Module, decay: float):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        torch._foreach_lerp_(self.shadow, [p.detach() for p in model.parameters()], 1 - self.decay)


def main() -> None:
    torch.set_num_threads(1)
    settings = Settings()
    torch.manual_seed(settings.seed)
    here = Path(__file__).parent
    stream = GaugeStream(ensure(here / "gauges"), settings.history, settings.horizon, settings.reach, settings.seed)
    model = Forecaster(settings.history, settings.horizon, STATIONS)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    averaged = Averaged(model, settings.decay)
    limit = int(os.environ.get("PLANTED_STEPS", settings.steps))
    (here / "settings.json").write_text(json.dumps(asdict(settings)))

    begun, value = time.perf_counter(), float("nan")
    for step, (past, future) in enumerate(DataLoader(stream, batch_size=settings.batch), start=1):
        error = model(past) - future
        loss = torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        averaged.update(model)
        value = loss.item()
        if step % settings.report == 0:
            print(f"{step:6d}  huber {value:.5f}  mae {error.abs().mean().item():.4f}", flush=True)
        if step >= limit:
            break
    seconds = time.perf_counter() - begun
    torch.save(averaged.shadow, here / "averaged.pt")
    print(f"{step} steps in {seconds:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
