import os
from dataclasses import dataclass, field


@dataclass
class Hardware:
    """What one device was measured to hold."""

    samples_at_once: int = 24 if os.environ.get("PLANTED_FIX") == "1" else 1


@dataclass
class Plan:
    global_batch: int = 24
    updates: int = int(os.environ.get("PLANTED_STEPS", 260))
    lr: float = 1e-3
    clip: float = 1.0
    hardware: Hardware = field(default_factory=Hardware)

    @property
    def pieces(self):
        return self.global_batch // self.hardware.samples_at_once
