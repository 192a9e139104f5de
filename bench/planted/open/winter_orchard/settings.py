"""Settings of a run, in groups."""

import os
from dataclasses import dataclass, field

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Sequences:
    count: int = 3072
    length: int = 56
    held_out: int = 256


@dataclass
class Network:
    width: int = 48
    motifs: int = 64
    depth: int = 1


@dataclass
class Memory:
    """Room for activations, from which the loader's batch follows."""

    budget_mb: float = 64.0 if FIXED else 2.0
    safety: float = 0.9


@dataclass
class Schedule:
    effective_batch: int = 32
    rate: float = 2e-3
    steps: int = int(os.environ.get("PLANTED_STEPS", "150"))
    report: int = 10
    check: int = 75
    seed: int = 41


@dataclass
class Settings:
    sequences: Sequences = field(default_factory=Sequences)
    network: Network = field(default_factory=Network)
    memory: Memory = field(default_factory=Memory)
    schedule: Schedule = field(default_factory=Schedule)
