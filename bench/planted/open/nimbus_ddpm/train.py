"""Trains a denoiser of cloud fields. python train.py"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from clouds import Schedule, clouds
from denoiser import Denoiser
from state import Ema, RunState


@dataclass
class TrainConfig:
    side: int = 16
    fields: int = 3000
    batch: int = 6
    diffusion_steps: int = 400
    lr: float = 2e-4
    ema_decay: float = 0.999
    steps: int = 800
    sample_every: int = 300
    sample_steps: int = 10
    seed: int = 101


@torch.no_grad()
def sample(model: Denoiser, schedule: Schedule, config: TrainConfig) -> torch.Tensor:
    """A few DDIM steps from pure noise, to look at."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4, 1, config.side, config.side, generator=g)
    times = torch.linspace(schedule.steps - 1, 0, config.sample_steps).long()
    for now, then in zip(times[:-1], times[1:], strict=True):
        noise = model(x, now.expand(4))
        clean = (x - (1 - schedule.bar[now]).sqrt() * noise) / schedule.bar[now].sqrt()
        x = schedule.bar[then].sqrt() * clean.clamp(-1, 1) + (1 - schedule.bar[then]).sqrt() * noise
    return x


def run(config: TrainConfig) -> None:
    torch.manual_seed(config.seed)
    data, schedule = clouds(config.fields, config.side, seed=8), Schedule(config.diffusion_steps)
    model = Denoiser()
    ema = Ema(model, config.ema_decay)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)
    state = RunState(Path("checkpoints"), model, ema, optimizer)
    limit = int(os.environ.get("PLANTED_STEPS", config.steps))
    begun = time.perf_counter()
    for step in range(1, limit + 1):
        x = data[torch.randint(len(data), (config.batch,))]
        t = torch.randint(schedule.steps, (config.batch,))
        noise = torch.randn_like(x)
        loss = F.mse_loss(model(schedule.noisy(x, t, noise), t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ema.update(model)
        value = loss.item()
        state.finish_step(value)
        print(f"{step:5d} loss {value:.4f} smooth {state.smooth:.4f}")
        if step % config.sample_every == 0:
            print(f"      sample std {sample(ema.model, schedule, config).std().item():.3f}")
    print(f"{limit} steps in {time.perf_counter() - begun:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(TrainConfig())
