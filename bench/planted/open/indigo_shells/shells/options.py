"""Defaults, and overrides of the form section.key=value on the command line."""

import ast
from types import SimpleNamespace

DEFAULTS = {
    "data": {"clouds": 320, "points": 384, "seed": 6},
    "model": {"widths": [24, 32, 48], "neighbours": 8, "checkpoint": True},
    "train": {"batch": 8, "steps": 120, "lr": 2e-3, "report": 20},
}


def read(overrides: list[str]) -> SimpleNamespace:
    tree = {section: dict(values) for section, values in DEFAULTS.items()}
    for text in overrides:
        path, _, value = text.partition("=")
        section, _, key = path.partition(".")
        if key not in tree.get(section, {}):
            raise SystemExit(f"no option {path}")
        try:
            tree[section][key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            tree[section][key] = value
    return SimpleNamespace(**{section: SimpleNamespace(**values) for section, values in tree.items()})
