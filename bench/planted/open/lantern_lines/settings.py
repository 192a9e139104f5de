"""Settings of a run, as YAML: `--file run.yaml` overrides the defaults."""

import os
from dataclasses import dataclass
from pathlib import Path

import yaml

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Settings:
    length: int = 48
    width: int = 96
    layers: int = 3
    heads: int = 4
    tokens_per_update: int = 48 * 32
    memory_tokens: int = 48 * 16 if FIXED else 64
    lr: float = 8e-4
    seed: int = 40
    report_every: int = 2
    evaluate_every: int = 30

    @property
    def sequences(self) -> int:
        """Sequences that are held at once: as many as fit into the memory that was allowed."""
        return max(1, self.memory_tokens // self.length)

    @property
    def accumulate(self) -> int:
        return self.tokens_per_update // (self.sequences * self.length)


def read(path: Path | None) -> Settings:
    return Settings(**(yaml.safe_load(path.read_text()) if path else {}))
