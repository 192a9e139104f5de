"""The tasks: one program that trains well, and for each task what was planted into it and how an expert takes it out again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]  # evals/
BASE = HERE / "base"
SHOWN_SEED, HIDDEN_SEED = 5, 77  # the assistant works on the first data; scores are measured on the second


@dataclass(frozen=True)
class Tolerance:
    """How far a change may move the training: mean absolute difference of losses, relative distance of weights, difference of scores."""

    mean_abs_loss_delta: float
    weights: float
    scores: float


@dataclass(frozen=True)
class Task:
    """One task. `request` is all that the assistant is told; `outputs` are further files below the run's folder that must stay equal."""

    name: str
    kind: str
    request: str
    command: tuple[str, ...]
    data: tuple[str, ...]
    healthy: bool
    tolerance: Tolerance
    note: str
    outputs: tuple[str, ...] = field(default=())

    @property
    def folder(self) -> Path:
        return HERE / "tasks" / self.name


def load(names: list[str] | None = None) -> list[Task]:
    """All tasks, or those named, in the order of their names. Raises `ValueError` for an unknown one."""
    there = sorted(path.parent.name for path in (HERE / "tasks").glob("*/task.json"))
    unknown = sorted(set(names or []) - set(there))
    if unknown:
        raise ValueError(f"no task is called {unknown[0]!r}; known: {', '.join(there)}")
    found = []
    for name in there:
        if names and name not in names:
            continue
        document = json.loads((HERE / "tasks" / name / "task.json").read_text(encoding="utf-8"))
        tolerance = Tolerance(**document.pop("tolerance"))
        tuples = {key: tuple(document.pop(key, ())) for key in ("command", "data", "outputs")}
        found.append(Task(name=name, tolerance=tolerance, **tuples, **document))
    return found


def build(task: Task, folder: Path, *, patches: tuple[Path, ...] = (), seed: int = SHOWN_SEED) -> Path:
    """The project of `task` in a new `folder`, with its data made from `seed`. Raises `PatchError` when a patch does not apply."""
    shutil.copytree(BASE, folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache", "runs"))
    planted = task.folder / "plant.diff"
    for patch in (*([planted] if planted.is_file() else []), *patches):
        apply(patch, folder)
    subprocess.run([sys.executable, "tools/make_data.py", "data", *task.data, "--seed", str(seed)], cwd=folder, check=True)
    return folder


def expert_patch(task: Task) -> Path | None:
    """How an expert mends it; None for a healthy program."""
    path = task.folder / "expert.diff"
    return path if path.is_file() else None


class PatchError(Exception):
    """A patch does not apply."""


def apply(patch: Path, folder: Path) -> None:
    """Apply a text patch below `folder`, and nowhere else. Raises `PatchError`."""
    command = ["git", "apply", "--whitespace=nowarn", str(patch.resolve())]
    environment = {"GIT_CEILING_DIRECTORIES": str(folder.parent), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise PatchError(done.stderr.strip() or "it does not apply")
