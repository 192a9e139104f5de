"""Forecast the rainfall of the next hours at the gauges of a catchment."""

import argparse
import logging
import os
import time
from pathlib import Path

import torch
from archive import Archive, EvenSpread, Windows
from torch import nn
from torch.utils.data import DataLoader

log = logging.getLogger("basin")


class Forecaster(nn.Module):
    """An LSTM whose last states are weighed by attention over the hours."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, hidden)
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True)
        self.weigh = nn.Linear(hidden, 1)
        self.leave = nn.Linear(2 * hidden, outputs)

    def forward(self, history: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(torch.relu(self.enter(history)))
        weights = self.weigh(states).softmax(dim=1)
        return self.leave(torch.cat([(weights * states).sum(1), states[:, -1]], dim=1))


def pinball(forecast: torch.Tensor, truth: torch.Tensor, level: float = 0.6) -> torch.Tensor:
    gap = truth - forecast
    return torch.maximum(level * gap, (level - 1) * gap).mean()


def save(path: Path, model: nn.Module, step: int) -> None:
    torch.save({"model": model.state_dict(), "step": step}, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--history", type=int, default=72)
    parser.add_argument("--ahead", type=int, default=6)
    parser.add_argument("--gauges", type=int, default=30)
    parser.add_argument("--hidden", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--save-every", type=int, default=40)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "400")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(3)

    archive = Archive(options.archive)
    windows = Windows(archive, options.history, options.ahead, options.gauges)
    spread = EvenSpread(len(windows), options.steps * options.batch_size)
    loader = DataLoader(windows, batch_size=options.batch_size, sampler=spread)
    model = Forecaster(options.gauges + 2, options.hidden, options.gauges)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    log.info("%d hours of archive, %d parameters", len(archive), sum(p.numel() for p in model.parameters()))

    began, step, loss = time.perf_counter(), 0, torch.zeros(())
    for history, truth in loader:
        optimizer.zero_grad()
        loss = pinball(model(history), truth)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 10 == 0:
            log.info("step %d: pinball %.4f", step, loss.item())
        if step % options.save_every == 0:
            save(options.archive / "forecaster.pt", model, step)
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
