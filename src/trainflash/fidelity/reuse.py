"""Baseline runs that one experiment leaves for the next: the same commit and command need not train again."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.fidelity.record import Record, read
from trainflash.schema import Command, Sandbox, write_document

_FILE = "baseline-runs.json"


@dataclass(frozen=True)
class Kept:
    """One run: its folder's name, whether it went to the program's own end, and how long it took."""

    folder: str
    whole: bool
    wall_s: float


@dataclass(frozen=True)
class BaselineRuns:
    """`baseline-runs.json` in the folder that holds the runs; `key` stands for commit and command."""

    key: str
    updates: int | None
    runs: dict[str, Kept]


def key_of(sandbox: Sandbox, command: Command) -> str | None:
    """A hash of the baseline's commit and of the command; None when the baseline is no clean checkout."""
    git = ["git", "-C", sandbox.baseline]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    dirty = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
    if head.returncode or dirty.returncode or dirty.stdout.strip():
        return None
    return hashlib.sha256(json.dumps([head.stdout.strip(), asdict(command)], sort_keys=True).encode()).hexdigest()


def load(directory: Path, key: str | None, updates: int | None) -> dict[str, tuple[Record, float]]:
    """`{name: (record, wall seconds)}` of kept runs that were made for the same question; empty when there are none."""
    try:
        plain = json.loads((directory / _FILE).read_text(encoding="utf-8"))
        known = BaselineRuns(plain["key"], plain["updates"], {name: Kept(**run) for name, run in plain["runs"].items()})
    except OSError:
        return {}
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{directory / _FILE}: cannot be read", "remove it: the baseline is then recorded again") from None
    if key is None or known.key != key or known.updates != updates:
        return {}
    found = {name: (read(directory / run.folder, whole=run.whole), run.wall_s) for name, run in known.runs.items()}
    return found if "baseline" in found and found["baseline"][0].updates else {}


def keep(directory: Path, key: str | None, updates: int | None, runs: dict[str, Kept]) -> None:
    """Write down `runs`, next to those of the same key that are kept already."""
    if key is None or not runs:
        return
    before = {}
    if "baseline" not in runs and (directory / _FILE).exists():
        before = json.loads((directory / _FILE).read_text(encoding="utf-8"))["runs"]
    write_document(directory / _FILE, BaselineRuns(key, updates, {**{name: Kept(**run) for name, run in before.items()}, **runs}))
