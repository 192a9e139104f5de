"""Configuration: conf/base.yaml with `a.b=c` on top."""

from pathlib import Path
from types import SimpleNamespace

import yaml


def compose(overrides: list[str]) -> SimpleNamespace:
    tree = yaml.safe_load((Path(__file__).parent.parent / "conf" / "base.yaml").read_text())
    for override in overrides:
        path, value = override.split("=", 1)
        *parents, leaf = path.split(".")
        node = tree
        for parent in parents:
            node = node[parent]
        if leaf not in node:
            raise KeyError(path)
        node[leaf] = yaml.safe_load(value)
    return SimpleNamespace(**{name: SimpleNamespace(**part) for name, part in tree.items()})
