"""Settings of the reed warbler classifier."""

import argparse
from dataclasses import dataclass, fields


@dataclass
class Config:
    classes: int = 12
    recordings: int = 40
    seconds: float = 6.0
    rate: int = 8000
    crop: int = 16000
    n_fft: int = 256
    hop: int = 160
    batch_size: int = 16
    width: int = 12
    lr: float = 2e-3
    weight_decay: float = 1e-4
    clip_norm: float = 5.0
    log_every: int = 20
    eval_every: int = 60
    seed: int = 4


def from_command_line() -> Config:
    parser = argparse.ArgumentParser(description="Train a song classifier on reed warbler recordings.")
    for field in fields(Config):
        parser.add_argument("--" + field.name.replace("_", "-"), type=type(field.default), default=field.default)
    return Config(**vars(parser.parse_args()))
