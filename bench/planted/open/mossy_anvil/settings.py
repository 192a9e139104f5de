from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    crystals: int = 1200
    smallest: int = 20
    largest: int = 44
    species: int = 12
    cutoff: float = 0.3
    batch: int = 160
    width: int = 32
    rounds: int = 2
    rate: float = 1e-3
    steps: int = 540
    report: int = 60
    seed: int = 5
