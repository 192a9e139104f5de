from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    dances: int = 1500
    frames: int = 80
    stride: int = 4
    width: int = 80
    code: int = 24
    sites: int = 8
    batch: int = 48
    gamma: float = 1.0
    lr: float = 5e-4
    steps: int = 450
    seed: int = 77
