import os
import tomllib
from pathlib import Path
from types import SimpleNamespace


def _wrap(value):
    return SimpleNamespace(**{k: _wrap(v) for k, v in value.items()}) if isinstance(value, dict) else value


def read(path="config.toml"):
    options = _wrap(tomllib.loads(Path(path).read_text()))
    options.max_steps = int(os.environ.get("PLANTED_STEPS", options.max_steps))
    options.loader.packed = os.environ.get("PLANTED_FIX") == "1"
    return options
