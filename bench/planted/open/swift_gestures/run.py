import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader

from engine import Engine
from events import GestureEvents
from voxels import VoxelGrid


def network(channels, classes):
    return nn.Sequential(
        nn.Conv2d(channels, 24, 3, stride=2, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, stride=2, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 48, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, classes),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--iterations", type=int, default=150)
    parser.add_argument("-b", "--batch", type=int, default=32)
    parser.add_argument("--bins", type=int, default=6)
    parser.add_argument("--classes", type=int, default=11)
    parser.add_argument("--recordings", type=int, default=1500)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)

    loader = DataLoader(
        GestureEvents(args.recordings, args.classes, 4),
        args.batch,
        shuffle=True,
        drop_last=True,
        collate_fn=VoxelGrid(args.bins),
        generator=torch.Generator().manual_seed(5),
    )
    model = network(2 * args.bins, args.classes)
    engine = Engine(model, torch.optim.AdamW(model.parameters(), lr=2e-3))

    @engine.on("iteration")
    def report(e):
        if e.iteration % 30 == 0:
            print(f"[{e.iteration}] loss {e.loss.item():.4f} accuracy {e.correct.item():.3f}")

    @engine.on("done")
    def finish(e):
        print(f"{e.iteration} steps in {e.elapsed:.2f}s, loss {e.loss.item():.6f}")

    engine.run(loader, int(os.environ.get("PLANTED_STEPS", args.iterations)))
