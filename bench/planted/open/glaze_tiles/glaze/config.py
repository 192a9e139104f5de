"""Settings, from the command line."""

import argparse
import os
from dataclasses import dataclass

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Config:
    size: int = 24
    width: int = 24
    tiles: int = 256
    batch_size: int = 12
    noise_levels: int = 200
    lr: float = 1e-3
    decay: float = 0.995
    seed: int = 25
    figure_every: int = 250 if FIXED else 8
    figure_dpi: int = 90
    steps: int = int(os.environ.get("PLANTED_STEPS", "270"))


def parse() -> Config:
    parser = argparse.ArgumentParser(prog="glaze")
    parser.add_argument("--steps", type=int, default=Config.steps)
    parser.add_argument("--size", type=int, default=Config.size)
    parser.add_argument("--width", type=int, default=Config.width)
    parser.add_argument("--batch-size", type=int, default=Config.batch_size)
    parser.add_argument("--figure-every", type=int, default=Config.figure_every)
    parser.add_argument("--seed", type=int, default=Config.seed)
    return Config(**vars(parser.parse_args()))
