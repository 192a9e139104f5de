"""A record of the run: one line of JSON a step, written at once so that a crash loses nothing."""

import hashlib
import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any


class Diary:
    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path, self.config = path, config
        self.file = path.open("a")
        self.lines = 0

    def fingerprint(self) -> str:
        """Tells runs of different configurations apart."""
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()[:12]

    def write(self, **figures: float) -> None:
        entry = {"run": self.fingerprint(), "config": deepcopy(self.config), **figures}
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno()) if self.lines % 50 == 0 else None
        self.lines += 1

    def last(self, name: str, count: int = 10) -> float:
        """The mean of a figure over the last lines."""
        values = [json.loads(line)[name] for line in self.path.read_text().splitlines()[-count:]]
        return sum(values) / len(values)
