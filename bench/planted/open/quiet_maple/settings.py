"""Settings of a run."""

import os
from dataclasses import dataclass, field

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass(frozen=True)
class SequenceSettings:
    """Where the made-up promoters come from."""

    length: int = 128
    train: int = 1536
    valid: int = 320
    motif_noise: float = 0.18
    seed: int = 31


@dataclass(frozen=True)
class ModelSettings:
    width: int = 24
    blocks: int = 3
    kernel: int = 7


@dataclass(frozen=True)
class SelectionSettings:
    """Which weights are kept at the end."""

    if FIXED:
        per_epoch: int = 1
    else:
        per_epoch: int = 24
    patience: int = 10_000
    metric: str = "auc"


@dataclass(frozen=True)
class Settings:
    batch_size: int = 32
    lr: float = 2e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    report_every: int = 24
    steps: int = int(os.environ.get("PLANTED_STEPS", "240"))
    sequences: SequenceSettings = field(default_factory=SequenceSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
