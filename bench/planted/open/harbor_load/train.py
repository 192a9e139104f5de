"""Quantile forecasts from config.yaml. python train.py [config.yaml]"""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import torch
import yaml
from torch.utils.data import DataLoader

from forecaster import Forecaster
from series import Windows, ensure, read


def endless(loader):
    while True:
        yield from loader


class Validator:
    def __init__(self, data, config):
        self.loader, self.batches = DataLoader(data, batch_size=config.batch), config.validate_batches

    @torch.no_grad()
    def __call__(self, model) -> float:
        model.eval()
        losses = [model.loss(x, y).item() for _, (x, y) in zip(range(self.batches), self.loader, strict=False)]
        model.train()
        return sum(losses) / len(losses)


def main() -> None:
    here = Path(__file__).parent
    config = SimpleNamespace(**yaml.safe_load((here / (sys.argv[1] if len(sys.argv) > 1 else "config.yaml")).read_text()))
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    values = read(ensure(here / config.csv))
    cut = int(0.9 * len(values))
    train = Windows(values[:cut], config.history, config.horizon)
    validate = Validator(Windows(values[cut:], config.history, config.horizon, train.mean, train.std), config)
    loader = DataLoader(train, batch_size=config.batch, shuffle=True, drop_last=True)
    model = Forecaster(values.shape[1], config.hidden, config.layers, config.horizon)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)
    limit = int(os.environ.get("PLANTED_STEPS", config.steps))
    best, begun = float("inf"), time.perf_counter()
    for step, (x, y) in enumerate(endless(loader), start=1):
        loss = model.loss(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        if step % config.log_every == 0:
            print(f"step {step} pinball {value:.5f} norm {norm.item():.3f}", flush=True)
        if step % config.validate_every == 0:
            score = validate(model)
            print(f"validation {score:.5f}")
            if score < best:
                best = score
                torch.save(model.state_dict(), here / "best.pt")
        if step >= limit:
            break
    print(f"{step} steps in {time.perf_counter() - begun:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
