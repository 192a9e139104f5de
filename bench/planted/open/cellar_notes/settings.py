"""The settings as dataclasses, read from JSON."""

import json
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path


@dataclass(frozen=True)
class Data:
    tasters: int
    wines: int
    notes: int
    traits: int


@dataclass(frozen=True)
class Model:
    width: int
    hidden: int
    layers: int
    dropout: float


@dataclass(frozen=True)
class Run:
    steps: int
    batch_size: int
    lr: float
    evaluate_every: int
    log_every: int
    halflife: float


@dataclass(frozen=True)
class Keep:
    directory: str
    last: int


@dataclass(frozen=True)
class Settings:
    seed: int
    data: Data
    model: Model
    run: Run
    keep: Keep


def build(kind: type, values: dict):
    unknown = set(values) - {field.name for field in fields(kind)}
    if unknown:
        raise KeyError(f"{kind.__name__}: unknown settings {sorted(unknown)}")
    return kind(**{f.name: build(f.type, values[f.name]) if is_dataclass(f.type) else values[f.name] for f in fields(kind)})


def load(path: Path) -> Settings:
    return build(Settings, json.loads(path.read_text()))
