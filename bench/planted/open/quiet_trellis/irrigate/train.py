"""python -m irrigate.train"""

import os
import time
from dataclasses import dataclass

import torch

from .agent import Gardener
from .rollout import Growers


@dataclass(frozen=True)
class Plan:
    updates: int = 320
    seasons: int = 8
    hours: int = 96
    hands: int = 2
    width: int = 96
    passes: int = 4
    rate: float = 7e-4
    seed: int = 21
    report: int = 20


def main(plan: Plan) -> None:
    torch.manual_seed(plan.seed)
    updates = int(os.environ.get("PLANTED_STEPS", plan.updates))
    gardener = Gardener(plan.width, plan.rate, plan.passes)
    growers = Growers(plan.hands, plan.seasons, plan.hours)
    began = time.perf_counter()
    for update in range(1, updates + 1):
        seasons = growers.gather(gardener.layers(), plan.seed + 1000 * update)
        loss, reward = gardener.learn(seasons)
        if update % plan.report == 0:
            print(f"update {update} loss {loss:.4f} reward {reward:.4f}", flush=True)
    seconds = time.perf_counter() - began
    growers.close()
    print(f"{updates} steps in {seconds:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main(Plan())
