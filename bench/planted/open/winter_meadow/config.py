"""The settings of a run."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    seed: int = 29
    recordings: int = 384
    length: int = 768
    channels: int = 6
    patch: int = 12
    hidden_share: float = 0.4
    width: int = 96
    heads: int = 4
    layers: int = 2
    batch_size: int = 12
    lr: float = 1e-3
    warmup: int = 30
    clip: float = 1.0
    report_every: int = 25
    check_every: int = 100
    save_every: int = 150
    steps: int = int(os.environ.get("PLANTED_STEPS", "300"))
