from dataclasses import dataclass, fields
from pathlib import Path

import yaml


@dataclass(frozen=True)
class RunConfig:
    seed: int = 0
    log_every: int = 50


@dataclass(frozen=True)
class DataConfig:
    root: str = "tiles_cache"
    tiles: int = 1000
    bands: int = 4
    size: int = 32
    classes: int = 5
    crop: int = 24


@dataclass(frozen=True)
class LoaderConfig:
    batch_size: int = 32
    num_workers: int = 0
    prefetch_factor: int = 2
    persistent_workers: bool = False
    drop_last: bool = True


@dataclass(frozen=True)
class OptimConfig:
    name: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Config:
    run: RunConfig
    data: DataConfig
    loader: LoaderConfig
    optim: OptimConfig


def _section(cls, raw):
    known = {f.name for f in fields(cls)}
    unknown = set(raw) - known
    if unknown:
        raise KeyError(f"{cls.__name__}: unknown keys {sorted(unknown)}")
    return cls(**raw)


def load_config(path):
    raw = yaml.safe_load(Path(path).read_text())
    return Config(
        run=_section(RunConfig, raw.get("run", {})),
        data=_section(DataConfig, raw.get("data", {})),
        loader=_section(LoaderConfig, raw.get("loader", {})),
        optim=_section(OptimConfig, raw.get("optim", {})),
    )
