"""Does the candidate do the same work while it is timed as while it is recorded? The cheap signals of both kinds of runs, step by step."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainflash.fidelity import reuse
from trainflash.schema import Check, Fidelity

NAME = "timed work"
_COUNTS = ("forwards", "backwards", "samples", "elements")
_LEAST_STEPS = 10
_OWN = 3.0  # times the largest distance between the losses of two runs of one version
_LEAST_RUNS = 3  # timed starts, that say how far apart those of an unseeded program are

Steps = dict[tuple[int, int], dict[str, Any]]  # by rank and step


def check(directory: Path, baseline_place: Path, timed: Iterable[tuple[Path, Path]], tolerance: float) -> Check:
    """The candidate's timed runs beside its recorded one; the baseline's, beside its own, say how far the program repeats itself.

    `directory` holds the candidate's recorded run and `baseline_place` the baseline's, as `trial.check` left them; `timed` are pairs of run
    folders, baseline first.
    """
    known = [recorded(place, side) for place, side in ((baseline_place, "baseline"), (directory, "candidate"))]
    pairs = [(read(old), read(new)) for old, new in timed]
    return compare(known[0], known[1], pairs, tolerance)


def compare(baseline: Steps, candidate: Steps, timed: Sequence[tuple[Steps, Steps]], tolerance: float) -> Check:
    """The same on what was read."""
    compared, limit = 0, _limit(baseline, timed, tolerance)
    for number, (old, new) in enumerate(timed, start=1):
        own = difference(baseline, old, math.inf)
        if own:
            return Check(NAME, None, f"the baseline itself does other work when it is timed: {own}")
        found = difference(candidate, new, limit)
        if found:
            return Check(NAME, False, f"start {number}: {found}")
        compared += len(candidate.keys() & new.keys())
    if compared < _LEAST_STEPS:
        return Check(NAME, None, f"only {compared} steps of timed and recorded runs could be compared")
    return Check(NAME, True, f"the same work in {compared} steps of {len(timed)} timed starts as in the recorded run")


def _limit(baseline: Steps, timed: Sequence[tuple[Steps, Steps]], tolerance: float) -> float | None:
    """How far the losses of a timed run may be from the recorded ones: 0 where the baseline repeats its own to the bit.

    A program that seeds nothing trains otherwise in each run: there the limit follows from how far apart runs of one version are, of the
    baseline and of the candidate as it is timed. None: too few runs to tell, or no losses.
    """
    ours, theirs = [baseline, *(old for old, _ in timed)], [new for _, new in timed]
    own = [apart for run in ours[1:] if (apart := _losses_apart(baseline, run)) is not None]
    if not own or max(own) == 0.0:
        return 0.0 if own else None
    if len(timed) < _LEAST_RUNS:
        return None
    apart = [_losses_apart(*pair) for runs in (ours, theirs) for pair in itertools.combinations(runs, 2)]
    return max(tolerance, _OWN * max(each for each in apart if each is not None))


def difference(recorded: Steps, timed: Steps, limit: float | None) -> str:
    """The first difference, "" for none. Losses may be `limit` apart in the mean; None: they are not compared."""
    for key in sorted(recorded.keys() & timed.keys()):
        left, right = recorded[key], timed[key]
        for name in _COUNTS:
            if left[name] != right[name]:
                return f"step {key[1] + 1}: {left[name]} {name} when it is recorded, {right[name]} when it is timed"
    apart = _losses_apart(recorded, timed)
    if limit is not None and apart is not None and not apart <= limit:
        return f"losses are {apart:.3g} apart in the mean between recorded and timed runs, limit {limit:.3g}"
    return ""


def _losses_apart(recorded: Steps, timed: Steps) -> float | None:
    """Mean |Δ| of the sums of losses of a step; None where there are none."""
    deltas = [
        abs(sum(recorded[key]["losses"]) - sum(timed[key]["losses"]))
        for key in recorded.keys() & timed.keys()
        if recorded[key]["losses"] and timed[key]["losses"]
    ]
    return math.fsum(deltas) / len(deltas) if deltas else None


def read(folder: Path | None) -> Steps:
    """What one run wrote; {} where it wrote nothing. A last line that a kill has torn is left out."""
    steps: Steps = {}
    for path in sorted(folder.glob("work-*.jsonl")) if folder is not None else ():
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                found = json.loads(line)
                found["losses"] = [float.fromhex(loss) for loss in found["losses"]]
                steps[found["rank"], found["step"]] = found
            except (ValueError, KeyError, TypeError):
                continue
    return steps


def recorded(place: Path, side: str) -> Steps:
    """What a side's recorded run in `place` did, step by step; {} where none is kept there."""
    return read(_recorded(place, side))


def applied(found: Fidelity, answer: Check) -> Fidelity:
    """`found`, with what the timed runs showed."""
    checks = (*found.checks, answer)
    if answer.ok is False:
        reason = f"{answer.name}: {answer.evidence}"
        return replace(found, verdict="changed", changed=(*found.changed, "work"), checks=checks, reasons=(reason, *found.reasons))
    if answer.ok is None:
        return replace(found, checks=checks, not_judged=(*found.not_judged, answer.name))
    return replace(found, checks=checks)


def _recorded(place: Path, side: str) -> Path | None:
    """Folder of the run that `reuse` keeps as that side's."""
    try:
        runs = json.loads((place / reuse.FILE.format(side)).read_text(encoding="utf-8"))["runs"]
        return place / str(runs[side]["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
