"""python -m roofs --believed 0.8"""

import argparse
import os

import torch
from torch import nn

from .patches import Register
from .trainer import Printer, Trainer
from .trust import Doubt, Ledger


def net(bands: int, width: int, materials: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(bands, width), nn.LayerNorm(width), nn.ReLU(),
        nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU(),
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, materials),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=90000)
    parser.add_argument("--bands", type=int, default=120)
    parser.add_argument("--materials", type=int, default=9)
    parser.add_argument("--wrong", type=float, default=0.25)
    parser.add_argument("--believed", type=float, default=0.8)
    parser.add_argument("--patience", type=int, default=5)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--batch", type=int, default=160)
    parser.add_argument("--steps", type=int, default=560)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    register = Register(args.count, args.bands, args.materials, args.wrong, args.seed)
    model = net(args.bands, args.width, args.materials)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, fused=True)
    doubt = Doubt(Ledger(args.count, start=2.0, decay=0.7), args.believed, args.patience)
    trainer = Trainer(model, optimizer, [doubt, Printer(25)])
    trainer.fit(register.batches(args.batch), int(os.environ.get("PLANTED_STEPS", args.steps)))


if __name__ == "__main__":
    main()
