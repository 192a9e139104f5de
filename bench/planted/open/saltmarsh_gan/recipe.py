"""The recipe of a run; command line options override it."""

import argparse
import os
from dataclasses import dataclass


@dataclass
class Recipe:
    seed: int = 41
    size: int = 16
    latent: int = 24
    width: int = 96
    batch: int = 48
    g_lr: float = 4e-4
    d_lr: float = 4e-4
    steps: int = 2400
    ema: float = 0.995
    diary: str = "diary.jsonl"
    diary_every: int = 1
    grid_every: int = 400


def from_cli() -> Recipe:
    recipe = Recipe()
    if os.environ.get("PLANTED_FIX") == "1":
        recipe.diary_every = 250
    recipe.steps = int(os.environ.get("PLANTED_STEPS", recipe.steps))
    parser = argparse.ArgumentParser()
    for name, value in vars(recipe).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    return Recipe(**vars(parser.parse_args()))
