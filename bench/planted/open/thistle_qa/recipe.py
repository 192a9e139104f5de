import os
from dataclasses import dataclass

FIX = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Recipe:
    """Sizes follow the paper: 32 questions an update."""

    examples: int = 12800
    per_update: int = 32
    per_device: int = 32 if FIX else 2
    updates: int = 500
    lr: float = 1e-3
    warmup: int = 50
    clip: float = 1.0
    seed: int = 88

    @property
    def accumulate(self) -> int:
        return self.per_update // self.per_device
