"""python -m gauges.train: levels some hours ahead at each gauge."""

import os
import time
from dataclasses import dataclass
from itertools import islice

import torch

from .basin import draw
from .forecaster import Forecaster
from .levels import season, windows


@dataclass(frozen=True)
class Plan:
    gauges: int = 260
    order: int = 3
    width: int = 12
    past: int = 6
    ahead: int = 3
    batch: int = 3
    hours: int = 400
    rate: float = 4e-3
    steps: int = int(os.environ.get("PLANTED_STEPS", 400))
    seed: int = 17


def main(plan: Plan) -> None:
    torch.manual_seed(plan.seed)
    basin = draw(plan.gauges, plan.order, plan.seed)
    levels = season(basin, plan.hours, plan.seed + 1)
    model = Forecaster(basin, levels.shape[-1], plan.width)
    optimizer = torch.optim.AdamW(model.parameters(), plan.rate, fused=True)
    began, smooth = time.perf_counter(), None
    for step, (past, later) in enumerate(islice(windows(levels, plan.past, plan.ahead, plan.batch, plan.seed), plan.steps), 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.smooth_l1_loss(model(past), later)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
        if step % 50 == 0:
            print(f"[{step}/{plan.steps}] {smooth:.5f}", flush=True)
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Plan())
