from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    vocab: int = 160  # note-on, note-off, time-shift, velocity
    context: int = 320
    width: int = 64
    heads: int = 8
    depth: int = 3
    batch: int = 3
    lr: float = 6e-4
    warmup: int = 40
    weight_decay: float = 0.05
    report_every: int = 50
    seed: int = 1712
