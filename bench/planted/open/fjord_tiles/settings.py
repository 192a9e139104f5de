import os
from dataclasses import dataclass

FIX = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Settings:
    side: int = 32
    train_tiles: int = 1280
    held_out_tiles: int = 256
    batch: int = 8
    base: int = 16
    lr: float = 2e-3
    max_steps: int = 640
    held_out_every: int = 160 if FIX else 8
    report_every: int = 1
    seed: int = 64
