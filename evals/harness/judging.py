"""What an answer is worth: gates first, then paired runs of the whole program. The assistant never sees or reaches any of this.

The answer is a patch. It is applied to a fresh copy of the project with other data, so that nothing that was computed during the attempt
counts. Training is compared with that of the unchanged program: losses of every step, evaluations, final weights.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.scores import Ratio, ratio
from harness.tasks import HIDDEN_SEED, PatchError, Task, build, expert_patch

RUN = Path("runs/latest")
GIVE_UP_S = 1200.0
OFF_LIMITS = re.compile(r"^(tests/|tools/make_data\.py$|data/|runs/)")
COMPARE = Path(__file__).with_name("compare_weights.py")


@dataclass(frozen=True)
class Finished:
    """One run of a program: seconds from start to end, and what it left."""

    seconds: float
    folder: Path


class RunFailed(Exception):
    """The program ended with an error, or not at all."""


def run(task: Task, folder: Path, environment: Mapping[str, str]) -> Finished:
    """Run the task's command in `folder`, fresh. Raises `RunFailed`."""
    shutil.rmtree(folder / "runs", ignore_errors=True)
    began = time.monotonic()
    try:
        done = subprocess.run(
            task.command, cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=GIVE_UP_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunFailed(f"it had not ended after {GIVE_UP_S:.0f} s") from None
    seconds = time.monotonic() - began
    if done.returncode:
        raise RunFailed(done.stderr.strip()[-400:] or f"it ended with {done.returncode}")
    return Finished(seconds, folder / RUN)


def paired(task: Task, left: Path, right: Path, pairs: int, environment: Mapping[str, str]) -> list[tuple[float, float]]:
    """Seconds of both, in turns and with the first place changing, so that a busy hour hits both."""
    found = []
    for n in range(pairs):
        order = (left, right) if n % 2 == 0 else (right, left)
        seconds = {folder: run(task, folder, environment).seconds for folder in order}
        found.append((seconds[left], seconds[right]))
    return found


def calibrate(task: Task, workplace: Path, pairs: int, environment: Mapping[str, str]) -> tuple[Ratio | None, Ratio | None]:
    """Speed-up of no change, and of the expert's, on this machine now."""
    plain = build(task, workplace / "plain", seed=HIDDEN_SEED)
    again = build(task, workplace / "again", seed=HIDDEN_SEED)
    unchanged = ratio(paired(task, plain, again, pairs, environment))
    patch = expert_patch(task)
    if patch is None:
        return unchanged, None
    expert = build(task, workplace / "expert", patches=(patch,), seed=HIDDEN_SEED)
    return unchanged, ratio(paired(task, plain, expert, pairs, environment))


@dataclass(frozen=True)
class Judged:
    """`gates`: what failed, by name. `seconds`: means of unchanged, answer and expert; None where nothing was run."""

    gates: tuple[str, ...]
    measured: Ratio | None
    seconds: tuple[float, float, float | None] | None


def judge(task: Task, patch: Path | None, workplace: Path, pairs: int, environment: Mapping[str, str]) -> Judged:
    """Judge one answer; `patch` None or empty: nothing is to be changed."""
    if patch is None or not patch.read_text(encoding="utf-8", errors="replace").strip():
        return Judged((), None, None)
    refused = [path for path in touched(patch) if OFF_LIMITS.search(path)]
    if refused:
        return Judged((f"touches {refused[0]}",), None, None)
    plain = build(task, workplace / "plain", seed=HIDDEN_SEED)
    try:
        changed = build(task, workplace / "changed", patches=(patch,), seed=HIDDEN_SEED)
    except PatchError as bad:
        return Judged((f"the patch does not apply: {bad}",), None, None)
    expert_diff = expert_patch(task)
    expert = build(task, workplace / "expert", patches=(expert_diff,), seed=HIDDEN_SEED) if expert_diff else None
    try:
        before = run(task, plain, environment).folder
        after = run(task, changed, environment).folder
    except RunFailed as bad:
        return Judged((f"the program fails: {bad}",), None, None)
    gates = tuple(differences(task, before, after, environment))
    try:
        times = paired(task, plain, changed, pairs, environment)
        experts = [run(task, expert, environment).seconds for _ in range(pairs)] if expert else []
    except RunFailed as bad:
        return Judged((*gates, f"the program fails: {bad}"), None, None)
    seconds = (_mean([left for left, _ in times]), _mean([right for _, right in times]), _mean(experts) if experts else None)
    return Judged(gates, ratio(times), seconds)


def touched(patch: Path) -> list[str]:
    """Paths that a patch names, from either side of it."""
    text = patch.read_text(encoding="utf-8", errors="replace")
    return sorted(set(re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", text, re.M)) | set(re.findall(r"^rename (?:from|to) (\S+)", text, re.M)))


def differences(task: Task, before: Path, after: Path, environment: Mapping[str, str]) -> list[str]:
    """What differs in kind or by more than the tolerance between two finished runs."""
    found: list[str] = []
    losses = [_losses(folder) for folder in (before, after)]
    if set(losses[0]) != set(losses[1]):
        found.append(f"{len(losses[1])} updates instead of {len(losses[0])}")
    else:
        delta = _mean([abs(losses[0][step] - losses[1][step]) for step in losses[0]])
        if not delta <= task.tolerance.mean_abs_loss_delta:
            found.append(f"losses differ by {delta:.2g}")
    scores = [lines(folder / "scores.jsonl") for folder in (before, after)]
    if [line["step"] for line in scores[0]] != [line["step"] for line in scores[1]]:
        found.append(f"{len(scores[1])} evaluations instead of {len(scores[0])}")
    elif scores[0] and any(_apart(left, right) > task.tolerance.scores for left, right in zip(*scores, strict=True)):
        found.append("evaluations differ")
    for name in task.outputs:
        if not _alike(lines(before / name), lines(after / name), task.tolerance.weights):
            found.append(f"{name} differs")
    return found + _weights(before, after, task.tolerance.weights, environment)


def _losses(run: Path) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in lines(run / "journal.jsonl") if line["event"] == "step"}


def _weights(before: Path, after: Path, tolerance: float, environment: Mapping[str, str]) -> list[str]:
    """Final checkpoints, read by an interpreter that has torch."""
    paths = [str(folder / "checkpoints" / "final.pt") for folder in (before, after)]
    done = subprocess.run(
        ["python", str(COMPARE), *paths, str(tolerance)], env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return ["the final checkpoint is missing or cannot be read"]
    return json.loads(done.stdout)


def lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file; none when it is missing or damaged."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError):
        return []


def _apart(left: dict[str, float], right: dict[str, float]) -> float:
    if set(left) != set(right):
        return math.inf
    return max((abs(left[name] - right[name]) for name in left), default=0.0)


def _alike(left: Any, right: Any, tolerance: float) -> bool:
    """Equal in form, numbers within a relative tolerance."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_alike(left[key], right[key], tolerance) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_alike(a, b, tolerance) for a, b in zip(left, right, strict=True))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=tolerance, abs_tol=1e-4)
    return left == right


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def digest(folder: Path) -> str:
    """SHA-256 over all files of a project that its owner wrote: whatever running it leaves behind does not count."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        relative = path.relative_to(folder)
        if relative.parts[0] in {".git", "runs", "data"} or "__pycache__" in relative.parts or ".pytest_cache" in relative.parts:
            continue
        found.update(relative.as_posix().encode() + b"\0" + path.read_bytes() + b"\0" + oct(os.stat(path).st_mode).encode())
    return found.hexdigest()
