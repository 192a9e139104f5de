from dataclasses import dataclass, field


@dataclass
class Settings:
    grids: int = 160
    buses: int = 118
    chords: int = 70
    batch: int = 6
    width: int = 48
    rounds: int = 4
    steps: int = 200
    lr: float = 1e-3
    seed: int = 21
    weights: dict = field(default_factory=lambda: {"voltage": 10.0, "angle": 1.0, "loading": 1.0, "losses": 0.2})
