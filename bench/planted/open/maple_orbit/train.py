import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from orbit.data import simulate
from orbit.surrogate import Surrogate


@dataclass
class Settings:
    bodies: int = 40_000
    held_out: int = 1024
    features: int = 256
    width: int = 640
    depth: int = 4
    batch: int = 512
    lr: float = 1e-3
    steps: int = int(os.environ.get("PLANTED_STEPS", 240))
    validate_every: int = 80
    seed: int = 23


@torch.no_grad()
def validate(model: Surrogate, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    error = F.mse_loss(model(x), y).item()
    model.train()
    return error


def main(s: Settings) -> None:
    torch.manual_seed(s.seed)
    x, y = simulate(s.bodies, s.seed)
    held_x, held_y = simulate(s.held_out, s.seed + 1)
    model = Surrogate(x.shape[1], y.shape[1], s.features, s.width, s.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, s.steps)

    began = time.perf_counter()
    for step in range(1, s.steps + 1):
        pick = torch.randint(len(x), (s.batch,))
        loss = F.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % s.validate_every == 0:
            print(f"step {step} loss {loss.item():.5f} held out {validate(model, held_x, held_y):.5f}", flush=True)
    print(f"{s.steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Settings())
