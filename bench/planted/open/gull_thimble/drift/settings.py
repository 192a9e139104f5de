from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    buoys: int = 60
    hours: int = 1500
    channels: int = 6
    past: int = 96
    ahead: int = 12
    batch: int = 64
    width: int = 32
    rate: float = 1e-3
    seed: int = 77
    report: int = 60
