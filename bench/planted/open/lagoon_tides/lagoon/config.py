import json
import os
from typing import NamedTuple


class Config(NamedTuple):
    seed: int
    gauges: int
    degree: int
    hours: int
    members: int
    hidden: int
    batch: int
    lr: float
    steps: int
    report: int
    ridge: float
    hold_basis: bool = False


def read(path: str) -> Config:
    with open(path) as file:
        values = json.load(file)
    values["hold_basis"] = values.get("hold_basis", os.environ.get("PLANTED_FIX") == "1")
    values["steps"] = int(os.environ.get("PLANTED_STEPS", values["steps"]))
    return Config(**values)
