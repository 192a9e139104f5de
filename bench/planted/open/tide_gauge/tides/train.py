"""Trains the tide forecaster: python -m tides.train --steps 700"""

import argparse
import os
import time

import torch
from torch.utils.data import DataLoader

from .dataset import TideWindows
from .net import TideNet
from .series import all_harbours


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 700)))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    torch.manual_seed(11)
    torch.set_num_threads(1)
    data = TideWindows(all_harbours(6, 24 * 200))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True)
    model = TideNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    print(f"{len(data)} windows, {sum(p.numel() for p in model.parameters()):,} parameters")

    step, began, running = 0, time.perf_counter(), 0.0
    while step < args.steps:
        for x, y in loader:
            loss = torch.nn.functional.smooth_l1_loss(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            running = 0.95 * running + 0.05 * loss.item()
            step += 1
            if step % 100 == 0:
                print(f"step {step:4d}  loss {running:.4f}  lr {schedule.get_last_lr()[0]:.2e}")
            if step >= args.steps:
                break
    print(f"{step} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
