"""Which moth flies where: wings and places are drawn together in one space."""

import math
import os
import time
from dataclasses import dataclass

import torch

import spectral
from moths import PLACE, WING, Nights, field_season
from towers import Pairing, info_nce


@dataclass
class Setting:
    pairs: int = 12288
    batch: int = 640
    width: int = 72
    inner: int = 288
    depth: int = 2
    lr: float = 0.004
    adam_lr: float = 1e-3
    steps: int = int(os.environ.get("PLANTED_STEPS", 420))


@torch.no_grad()
def hits(model, wing, place):
    return (model(wing, place).argmax(1) == torch.arange(len(wing))).float().mean().item()


def main(s: Setting):
    torch.manual_seed(11)
    nights = iter(Nights(*field_season(s.pairs, 1), s.batch))
    held = field_season(400, 2)
    model = Pairing(WING, PLACE, s.width, s.inner, s.depth)
    optimizers = spectral.for_model(model, s.lr, s.adam_lr)
    plans = [torch.optim.lr_scheduler.LambdaLR(o, lambda k: 0.5 + 0.5 * math.cos(math.pi * min(1, k / 2000))) for o in optimizers]
    began = time.perf_counter()
    for step in range(1, s.steps + 1):
        wing, place = next(nights)
        loss = info_nce(model(wing, place))
        model.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer, plan in zip(optimizers, plans):
            optimizer.step()
            plan.step()
        if step % 60 == 0:
            print(f"{step:5d}  loss {loss.item():.4f}  found {hits(model, *held):.3f}", flush=True)
    print(f"{s.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Setting())
