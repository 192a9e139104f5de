"""Fit an ensemble of surrogates for section polars; its spread is the doubt that the planner sees."""

import os
import time
from dataclasses import dataclass

import torch
from polars.ensemble import Ensemble
from polars.tunnel import Resamples, measure


@dataclass(frozen=True)
class Plan:
    points: int = 20_000
    shape: int = 12
    members: int = 5
    width: int = 160
    depth: int = 3
    batch: int = 1024
    rate: float = 1e-3
    steps: int = 240
    report: int = 30
    seed: int = 7


def main(plan: Plan) -> None:
    steps = int(os.environ.get("PLANTED_STEPS", plan.steps))
    torch.manual_seed(plan.seed)
    points = Resamples(*measure(plan.points, plan.shape, plan.seed), plan.members, plan.seed)
    ensemble = Ensemble(plan.members, inputs=plan.shape + 3, width=plan.width, depth=plan.depth, outputs=3)
    optimizer = torch.optim.AdamW(ensemble.weights.values(), plan.rate, fused=True)

    began = time.perf_counter()
    for step in range(1, steps + 1):
        each = ensemble(*points.draw(plan.batch))
        optimizer.zero_grad()
        each.sum().backward()
        optimizer.step()
        if step % plan.report == 0:
            low, high = each.detach().aminmax()
            print(f"step {step} loss {low:.4f} to {high:.4f}", flush=True)
    print(f"{step} steps in {time.perf_counter() - began:.2f} s, loss {each.mean().item():.6f}")


if __name__ == "__main__":
    main(Plan())
