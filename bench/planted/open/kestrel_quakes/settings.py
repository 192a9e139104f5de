"""Settings of a run: conf.yaml, then the environment."""

import os
from dataclasses import dataclass, fields
from pathlib import Path

import yaml


@dataclass
class Settings:
    seed: int = 0
    stations: int = 32
    trace_length: int = 512
    events: int = 512
    batch_size: int = 16
    channels: int = 32
    depth: int = 3
    lr: float = 1e-3
    weight_decay: float = 0.0
    steps: int = 1000
    print_every: int = 20
    probe_every: int = 200
    queue_size: int = 4
    despike_window: int = 9
    filter_backend: str = "reference"

    @classmethod
    def load(cls, path: str) -> "Settings":
        raw = yaml.safe_load(Path(path).read_text())
        known = {f.name for f in fields(cls)}
        unknown = set(raw) - known
        if unknown:
            raise ValueError(f"unknown settings: {sorted(unknown)}")
        settings = cls(**raw)
        if os.environ.get("PLANTED_FIX") == "1":
            settings.filter_backend = "scipy"
        settings.steps = int(os.environ.get("PLANTED_STEPS", settings.steps))
        return settings
