"""Settings from the INI file."""

import configparser
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    latitudes: int
    longitudes: int
    channels: int
    truncations: tuple[int, ...]
    simulations: int
    frames: int
    holdout: int
    wavenumbers: int
    batch: int
    steps: int
    rate: float
    report: int
    check: int
    seed: int

    @classmethod
    def load(cls, path: Path) -> "Settings":
        parser = configparser.ConfigParser()
        parser.read(path)
        flat = {name: value for section in parser.sections() for name, value in parser[section].items()}
        truncations = tuple(int(part) for part in flat.pop("truncations").split(","))
        rate = float(flat.pop("rate"))
        numbers = {name: int(value) for name, value in flat.items()}
        numbers["steps"] = int(os.environ.get("PLANTED_STEPS", numbers["steps"]))
        return cls(truncations=truncations, rate=rate, **numbers)
