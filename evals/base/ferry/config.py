"""The configuration: YAML with defaults, overridden on the command line, checked before anything runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

import yaml


class ConfigError(ValueError):
    """The configuration cannot be used; the text says which entry and why."""


@dataclass(frozen=True)
class DataConfig:
    folder: str = "data"
    min_count: int = 2
    max_vocabulary: int = 8000
    max_length: int = 64
    transforms: tuple[str, ...] = ("lower", "mask_numbers", "squeeze", "drop_words")
    drop_rate: float = 0.05
    batch_size: int = 32
    eval_batch_size: int = 64
    workers: int = 0
    pin_memory: bool = False


@dataclass(frozen=True)
class ModelConfig:
    encoder: str = "attention"
    width: int = 64
    heads: int = 4
    layers: int = 2
    hidden: int = 128
    dropout: float = 0.1
    queues: int = 12


@dataclass(frozen=True)
class OptimConfig:
    name: str = "adamw"
    lr: float = 2e-3
    weight_decay: float = 0.01
    schedule: str = "cosine"
    warmup_steps: int = 20
    clip_norm: float = 1.0
    accumulate: int = 1
    ema_decay: float = 0.99
    urgency_weight: float = 0.3
    label_smoothing: float = 0.05


@dataclass(frozen=True)
class TrainConfig:
    seed: int = 13
    epochs: int = 3
    threads: int = 1
    log_every: int = 20
    evaluate_every: int = 0
    checkpoint_every: int = 0
    keep_checkpoints: int = 2
    patience: int = 0
    hooks: tuple[str, ...] = ("progress", "journal", "ema", "evaluation", "checkpoint")
    metrics: tuple[str, ...] = ("accuracy", "macro_f1", "urgency_error", "ranking")


@dataclass(frozen=True)
class Config:
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def plain(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def with_data(self, folder: Path) -> Config:
        return replace(self, data=replace(self.data, folder=str(folder)))


SECTIONS = {"data": DataConfig, "model": ModelConfig, "optim": OptimConfig, "train": TrainConfig}


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
    """The file's configuration with `section.key=value` overrides. Raises `ConfigError`."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as bad:
        raise ConfigError(f"{path}: {bad.strerror}") from None
    except yaml.YAMLError as bad:
        raise ConfigError(f"{path} is no valid YAML: {bad}") from None
    base = document.pop("base", None)
    if base is not None:
        parent = yaml.safe_load((path.parent / base).read_text(encoding="utf-8")) or {}
        document = merged(parent, document)
    for override in overrides or []:
        name, separator, value = override.partition("=")
        section, dot, key = name.partition(".")
        if not separator or not dot:
            raise ConfigError(f"{override!r} is no override; write section.key=value")
        document.setdefault(section, {})[key] = yaml.safe_load(value)
    unknown = sorted(set(document) - set(SECTIONS))
    if unknown:
        raise ConfigError(f"unknown section {unknown[0]!r}; known: {', '.join(SECTIONS)}")
    config = Config(**{name: read_section(made, name, document.get(name) or {}) for name, made in SECTIONS.items()})
    check(config)
    return config


def merged(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    found = {name: dict(entries or {}) for name, entries in parent.items()}
    for name, entries in child.items():
        found[name] = {**found.get(name, {}), **(entries or {})}
    return found


def read_section(made: type, name: str, entries: dict[str, Any]) -> Any:
    hints = get_type_hints(made)
    values: dict[str, Any] = {}
    for key, value in entries.items():
        if key not in hints:
            raise ConfigError(f"unknown entry {name}.{key}; known: {', '.join(hints)}")
        values[key] = converted(f"{name}.{key}", value, hints[key])
    return made(**values)


def converted(name: str, value: Any, wanted: Any) -> Any:
    if wanted in (int, float, str, bool):
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
            return value
        raise ConfigError(f"{name} must be {wanted.__name__}, not {value!r}")
    if isinstance(value, (list, tuple)):
        return tuple(value)
    raise ConfigError(f"{name} must be a list, not {value!r}")


def check(config: Config) -> None:
    data, model, optim, train = config.data, config.model, config.optim, config.train
    rules = [
        (data.batch_size > 0, "data.batch_size must be positive"),
        (data.max_length >= 8, "data.max_length must be at least 8"),
        (0 <= data.drop_rate < 1, "data.drop_rate must be in [0, 1)"),
        (model.width % model.heads == 0, "model.width must be divisible by model.heads"),
        (optim.accumulate >= 1, "optim.accumulate must be at least 1"),
        (0 <= optim.ema_decay < 1, "optim.ema_decay must be in [0, 1)"),
        (train.epochs >= 1, "train.epochs must be at least 1"),
        (train.threads >= 1, "train.threads must be at least 1"),
    ]
    for holds, text in rules:
        if not holds:
            raise ConfigError(text)
