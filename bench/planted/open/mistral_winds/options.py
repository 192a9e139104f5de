"""Everything that can be set, as a dataclass; `--set name=value` on the command line."""

import os
import sys
from dataclasses import dataclass, fields


@dataclass
class Options:
    seed: int = 19
    profiles: int = 2000
    levels: int = 48
    width: int = 384
    blocks: int = 6
    noise_steps: int = 200
    batch: int = 24
    lr: float = 3e-4
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.01
    warmup: int = 50
    steps: int = 2400
    sample_every: int = 500
    stock_update: bool = os.environ.get("PLANTED_FIX") == "1"


def parse(argv=None) -> Options:
    options = Options(steps=int(os.environ.get("PLANTED_STEPS", Options.steps)))
    kinds = {f.name: f.type for f in fields(Options)}
    argv = list(sys.argv[1:] if argv is None else argv)
    while argv:
        if argv.pop(0) != "--set" or not argv:
            raise SystemExit("usage: train.py [--set name=value ...]")
        name, _, value = argv.pop(0).partition("=")
        if name not in kinds:
            raise SystemExit(f"no option {name}")
        setattr(options, name, kinds[name](value) if kinds[name] is not bool else value == "true")
    return options
