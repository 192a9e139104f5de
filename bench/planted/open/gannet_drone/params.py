import os
import tomllib
from types import SimpleNamespace


def load(path: str, seed: int) -> SimpleNamespace:
    with open(path, "rb") as file:
        raw = tomllib.load(file)
    params = SimpleNamespace(**{name: SimpleNamespace(**table) for name, table in raw.items()})
    params.seed = seed
    params.bonus.bulk = os.environ.get("PLANTED_FIX", "0") == "1"
    params.learner.updates = int(os.environ.get("PLANTED_STEPS", params.learner.updates))
    return params
