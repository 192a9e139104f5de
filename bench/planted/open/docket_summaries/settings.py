"""Defaults of all runs; a run overrides them with `--set section.key=value`."""

import os

FIXED = os.environ.get("PLANTED_FIX") == "1"

DEFAULTS = {
    "data": {"entries": 1600, "seed": 31, "batch_size": 16},
    "encoding": {"lowercase": True, "max_tokens": 192, "pad": "longest" if FIXED else "max_tokens"},
    "model": {"width": 96, "heads": 4, "layers": 2, "feedforward": 256},
    "training": {"lr": 4e-4, "weight_decay": 0.01, "clip": 1.0, "report_every": 5},
}


def with_overrides(pairs: list[str]) -> dict:
    settings = {section: dict(values) for section, values in DEFAULTS.items()}
    for pair in pairs:
        path, value = pair.split("=", 1)
        section, key = path.split(".")
        settings[section][key] = type(settings[section][key])(value)
    return settings
