import os
from dataclasses import dataclass


@dataclass
class Settings:
    seed: int = 8
    updates: int = int(os.environ.get("PLANTED_STEPS", 150))
    effective_batch: int = 64
    micro_batch: int = 64 if os.environ.get("PLANTED_FIX") == "1" else 2
    lr: float = 1.5e-3
    width: int = 64

    @property
    def accumulate(self) -> int:
        return self.effective_batch // self.micro_batch
