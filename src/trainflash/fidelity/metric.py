"""The project's own metric: read from the program's output, from a JSON file that it writes, or computed by a function of the project."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trainflash.errors import UsageError
from trainflash.fidelity.reuse import Run
from trainflash.schema import Check

_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_FILE_PATH = re.compile(r"(?:(?P<file>[^$]+\.jsonl?):)?(?P<path>\$.*)", re.DOTALL)
_STEP = re.compile(r"\.(\w[\w-]*)|\[(-?\d+|\*)\]|\['([^']+)'\]|\[\"([^\"]+)\"\]")
_CALL_S = 600.0
# Runs in the owner's interpreter; the last line of its output is the answer.
_CALL = (
    "import importlib, sys; sys.path.insert(0, ''); module, name = sys.argv[1].split(':'); "
    "print(repr(float(getattr(importlib.import_module(module), name)(sys.argv[2]))))"
)


@dataclass(frozen=True)
class Metric:
    """`text` as the owner wrote it. `folder` is the baseline's project folder, from which a function is imported for both sides."""

    kind: Literal["regex", "jsonpath", "callable"]
    text: str
    tolerance: float
    folder: str
    prefix: str = ""
    interpreter: str = sys.executable

    def values(self, run: Run) -> list[float]:
        """All values that a run shows, in order; [] where it shows none. Raises `UsageError` for a function that fails."""
        outputs = None if run.outputs is None else run.outputs / self.prefix
        if self.kind == "callable":
            return [self._call(outputs)] if outputs is not None else []
        if self.kind == "regex":
            return [
                value for match in re.finditer(self.text, _text(run.log), re.MULTILINE) if (value := _number(_group(match))) is not None
            ]
        match = _FILE_PATH.fullmatch(self.text)
        assert match is not None
        path = run.log if match["file"] is None else (outputs / match["file"] if outputs is not None else None)
        if path is None:
            return []
        steps = [next(filter(None, groups)) for groups in _STEP.findall(match["path"])]
        found = (value for document in _documents(_text(path)) for value in _at(document, steps))
        return [value for each in found if (value := _number(each)) is not None]

    def compare(self, baseline: Run, candidate: Run) -> Check:
        """Mean |Δ| of the values that both runs show; what the baseline shows and a candidate at its own end lacks has changed."""
        old, new = self.values(baseline), self.values(candidate)
        if not old:
            return Check("metric", None, f"the baseline shows no value of the metric {self.text}")
        if not new:
            return Check("metric", False, f"the metric {self.text} is gone: {len(old)} values → none")
        if len(old) != len(new) and baseline.record.whole and candidate.record.whole:
            return Check("metric", False, f"{len(old)} values of the metric {self.text} → {len(new)}")
        deltas = [abs(a - b) for a, b in zip(old, new, strict=False)]
        if not all(map(math.isfinite, deltas)):
            return Check("metric", False if all(map(math.isfinite, old)) else None, f"the metric {self.text} is not finite")
        mean = math.fsum(deltas) / len(deltas)
        figures = (
            f"{self.text}: mean |Δ| {mean:.3g} over {len(deltas)} values, last {old[len(deltas) - 1]:.6g} → {new[len(deltas) - 1]:.6g}"
        )
        return Check("metric", mean <= self.tolerance, f"{figures}, limit {self.tolerance:.3g}")

    def _call(self, outputs: Path | None) -> float:
        command = [self.interpreter, "-c", _CALL, self.text, str(outputs)]
        try:
            answer = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=_CALL_S)
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"the metric {self.text} did not answer within {_CALL_S:.0f} s", "it must be quick: it reads what a run wrote"
            ) from None
        if answer.returncode:
            why = (answer.stderr.strip().splitlines() or ["no message"])[-1]
            raise UsageError(f"the metric {self.text} failed: {why}", "it gets a run's output folder and returns one number")
        return float(answer.stdout.strip().splitlines()[-1])


def parse(text: str, tolerance: float, *, folder: str, prefix: str = "", interpreter: str = sys.executable) -> Metric:
    """`MODULE:FUNCTION`, `$.path` or `FILE.json:$.path`, else a regular expression with one group. Raises `UsageError` for what is none."""
    if _CALLABLE.fullmatch(text):
        return Metric("callable", text, tolerance, folder, prefix, interpreter)
    match = _FILE_PATH.fullmatch(text)
    if match:
        path = match["path"][1:]
        if not path or _STEP.sub("", path):
            raise UsageError(f"{match['path']!r} is no path in JSON", "write it such as $.eval.accuracy, $.losses[-1] or $.epochs[*].loss")
        return Metric("jsonpath", text, tolerance, folder, prefix, interpreter)
    try:
        pattern = re.compile(text)
    except re.error as bad:
        raise UsageError(f"{text!r} is no regular expression: {bad}", "give one with a group around the number") from None
    if pattern.groups != 1 and "value" not in pattern.groupindex:
        raise UsageError(
            f"{text!r} has {pattern.groups} groups",
            "put one group around the number, such as 'val_loss=([0-9.e-]+)', or name it: (?P<value>…)",
        )
    return Metric("regex", text, tolerance, folder, prefix, interpreter)


def _group(match: re.Match[str]) -> str | None:
    return match["value"] if "value" in match.re.groupindex else match[1]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _documents(text: str) -> Iterator[Any]:
    """One JSON document, or one on each line; other lines are passed over."""
    try:
        yield json.loads(text)
        return
    except ValueError:
        pass
    for line in text.splitlines():
        if line.lstrip()[:1] in ("{", "["):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _at(document: Any, steps: list[str]) -> Iterator[Any]:
    """Values at a path; none where a part of it is missing."""
    if not steps:
        yield document
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        for each in document.values() if isinstance(document, Mapping) else document if isinstance(document, list) else ():
            yield from _at(each, rest)
    elif isinstance(document, Mapping):
        if step in document:
            yield from _at(document[step], rest)
    elif isinstance(document, list) and re.fullmatch(r"-?\d+", step) and -len(document) <= int(step) < len(document):
        yield from _at(document[int(step)], rest)
