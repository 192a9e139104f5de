"""Foretell the next radar frame."""

import argparse
import os
import time

import torch
from lightning.fabric import Fabric
from nowcast.former import Nowcaster
from nowcast.rain import Radar
from nowcast.reproducible import settle
from torch.utils.data import DataLoader


class Loop:
    def __init__(self, fabric: Fabric, steps: int, rate: float, report: int) -> None:
        self.fabric, self.steps, self.rate, self.report = fabric, steps, rate, report

    def run(self, model: Nowcaster, loader: DataLoader) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), self.rate, fused=True)
        cut = model.cut
        model, optimizer = self.fabric.setup(model, optimizer)
        loader = self.fabric.setup_dataloaders(loader)
        began, step = time.perf_counter(), 0
        while step < self.steps:
            for fields, coming in loader:
                step += 1
                loss = torch.nn.functional.mse_loss(model(fields), cut(coming))
                self.fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                if step % self.report == 0:
                    self.fabric.print(f"step {step} loss {loss.item():.5f}", flush=True)
                if step == self.steps:
                    break
        self.fabric.print(f"{step} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 220)))
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--frames", type=int, default=4)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--patch", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    generator = settle(args.seed)
    radar = Radar(args.sequences, args.frames, args.side, blobs=9, seed=args.seed)
    loader = DataLoader(radar, batch_size=1, shuffle=True, generator=generator)
    model = Nowcaster(args.frames, args.side, args.patch, width=32, heads=4, layers=2)
    Loop(Fabric(accelerator="cpu", devices=1), args.steps, args.rate, report=20).run(model, loader)


if __name__ == "__main__":
    main()
