"""All numbers of the water-table model."""

import os
from dataclasses import dataclass, field


@dataclass
class Soil:
    layers: int = 14
    days: int = 21
    capacity: float = 1.0
    dt: float = 0.25


@dataclass
class Config:
    soil: Soil = field(default_factory=Soil)
    wells: int = 400
    batch: int = 64
    features: int = 10
    width: int = 160
    lr: float = 2e-3
    seed: int = 11
    report: int = 50
    steps: int = int(os.environ.get("PLANTED_STEPS", 850))
