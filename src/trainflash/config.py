"""Settings of one project: `trainflash.toml`, else `[tool.trainflash]` in `pyproject.toml`; `TRAINFLASH_…` in the environment wins.

Options on the command line win over all of them; the CLI asks for a setting only where an option was not given.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from trainflash.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AGAIN = "again"  # `--on again`: here, going on with what the command left when its job was taken away
IN_A_JOB = (("--on", "here"), ("--on", AGAIN))  # what a job types: the first time, and each time after it was taken away


@dataclass(frozen=True)
class Settings:
    """Defaults of a project's owner. `command` is what to run when nothing follows `--`."""

    command: tuple[str, ...] = ()
    budget_s: float = 1200.0
    tolerance: float = 1e-3  # mean |loss delta|; own: far below what another seed changes
    min_gain: float = 1.02  # see stats; may be raised, never lowered
    allow: tuple[str, ...] = ()  # changes that the owner agrees to by name: order, precision, cadence, …
    exact: bool = False  # refuse what is not equal to the last bit
    writable: tuple[str, ...] = ()  # folders outside the project that a run may write, through a private layer
    gate: Mapping[str, Any] = field(default_factory=dict)  # tolerances of the gate by name, and its `main_branch`
    online: bool = False  # let W&B, MLflow, Comet and the Hub reach the network
    on: str = "here"  # where programs are started: here, or as a job: slurm
    slurm: Mapping[str, Any] = field(default_factory=dict)  # partition, constraint, time, wait, options (a list of KEY=VALUE)


def load(project: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Settings of `project`. Raises `UsageError` that names the file and key when one is unknown or mistyped."""
    environment = os.environ if environment is None else environment
    settings = Settings()
    for path, table in _tables(project):
        settings = _merge(settings, table, str(path))
        break
    names = {each.name for each in fields(Settings)} - {"gate", "slurm"}
    from_environment = {
        name: environment[f"TRAINFLASH_{name.upper()}"] for name in sorted(names) if environment.get(f"TRAINFLASH_{name.upper()}")
    }
    return _merge(settings, from_environment, "environment")


def _tables(project: Path) -> list[tuple[Path, Mapping[str, Any]]]:
    found = []
    for name in ("trainflash.toml", "pyproject.toml"):
        path = project / name
        if not path.is_file():
            continue
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as bad:
            if name == "pyproject.toml":
                continue  # not our file: a broken one is its owner's business
            raise UsageError(f"{path}: {bad}", "mend the TOML, or remove the file") from None
        table = document if name == "trainflash.toml" else document.get("tool", {}).get("trainflash")
        if table is not None:
            found.append((path, table))
    return found


def _merge(settings: Settings, table: Mapping[str, Any], source: str) -> Settings:
    known = {each.name for each in fields(Settings)} | {"budget"}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise UsageError(f"{source}: unknown setting {key!r}", f"known settings: {', '.join(sorted(known - {'budget_s'}))}")
        try:
            values["budget_s" if key == "budget" else key] = _PARSE[key](value)
        except (TypeError, ValueError) as bad:
            raise UsageError(f"{source}: {key} = {value!r}: {bad}", "see `trainflash tune --help` for its form") from None
    return replace(settings, **values)


def parse_duration(text: str | float) -> float:
    """Seconds of `90`, `"90s"`, `"20m"` or `"1.5h"`. Raises ValueError when it is none of these or not positive."""
    raw = str(text).strip()
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(raw[-1:])
    seconds = float(raw[:-1]) * unit if unit else float(raw)
    if not 0 < seconds < float("inf"):
        raise ValueError("a duration must be positive, such as 90s, 20m or 1.5h")
    return seconds


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return tuple(str(word) for word in value)


def _command(value: Any) -> tuple[str, ...]:
    return tuple(shlex.split(value)) if isinstance(value, str) else tuple(str(word) for word in value)


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError("must be a positive number")
    return number


def _min_gain(value: Any) -> float:
    gain = float(value)
    if not gain >= 1.02:
        raise ValueError("may be raised, never lowered below 1.02: a smaller gain is inside the noise of a process start")
    return gain


def _table(value: Any, name: str = "[gate]") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a table, such as {name} in trainflash.toml")
    return dict(value)


def _slurm(value: Any) -> dict[str, Any]:
    table = _table(value, "[slurm]")
    if isinstance(table.get("options", []), str) or not isinstance(table.get("options", []), (list, tuple)):
        raise ValueError('options must be a list, such as ["nodes=2", "exclusive"]')
    return {name: parse_duration(word) if name in {"time", "wait"} else word for name, word in table.items()}


def _place(value: Any) -> str:
    if value not in {"here", "slurm"}:
        raise ValueError("must be here or slurm")
    return str(value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
        return str(value).lower() in {"1", "true", "yes", "on"}
    raise ValueError("must be true or false")


_PARSE = {
    "command": _command,
    "budget": parse_duration,
    "budget_s": parse_duration,
    "tolerance": _positive,
    "min_gain": _min_gain,
    "allow": _words,
    "exact": _flag,
    "writable": _words,
    "gate": _table,
    "online": _flag,
    "on": _place,
    "slurm": _slurm,
}
