import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Config:
    stones: int = 3000
    harmonics: int = 40
    landmarks: int = 18
    width: int = 384
    depth: int = 3
    batch: int = 96
    rate: float = 1e-3
    seed: int = 23
    hooks: tuple = ("progress", "warm_up")
    steps: int = field(default_factory=lambda: int(os.environ.get("PLANTED_STEPS", 650)))
