"""Forecasts the weir's level from upstream gauges; the river's state is carried from one window to the next."""

import os
import time

import torch
from gauges import River
from lightning.fabric import Fabric
from model import WeirNet
from setup import portable_weights, prepare


def detached(state):
    return None if state is None else tuple(part.detach() for part in state)


def main():
    fabric = Fabric(accelerator="cpu", devices=1)
    prepare(seed=3)
    steps = int(os.environ.get("PLANTED_STEPS", 650))
    river = River()
    model = WeirNet(river.inputs)
    portable_weights(model, seed=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=1e-3, foreach=True)
    model, optimizer = fabric.setup(model, optimizer)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps + 1)

    step, ema, began = 0, None, time.time()
    while step < steps:
        state = None  # a new season starts dry
        for window, target in river.season():
            forecast, state = model(window, detached(state))
            loss = torch.nn.functional.huber_loss(forecast, target)
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            step += 1
            ema = loss.item() if ema is None else 0.96 * ema + 0.04 * loss.item()
            if step % 50 == 0:
                fabric.print(f"step {step} loss {ema:.4f} state {state[0].abs().mean():.3f}")
            if step == steps:
                break
    fabric.print(f"{step} steps in {time.time() - began:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
