"""Numbers that both sides print, or write into text files, in the same words after the same training: another accuracy was come by in
another way.

And where evaluations are made in another way, as with a cache or for many rows at once, after the same training: the numbers that come from
them, known by a run of the baseline whose evaluations alone saw other weights, say whether they come to the same.

Times, rates, dates and memory are printed too, and an honest candidate changes them. So a number that differs is held against the candidate
only if nothing else can have moved it: neither its words nor its unit speak of time or memory, it has enough digits, a second run of the
baseline prints it again, and a run whose weights alone were moved prints another one. What differs without that proof is a note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.fidelity import written
from trainflash.fidelity.reuse import Run
from trainflash.schema import Check, Fidelity

CHECK, VOUCHED = "printed values", "evaluated figures"
EVALUATIONS = "nudged-evaluations"  # a run of the baseline
EXPLAINED = frozenset({"evaluation", "cadence"})  # changes in kind that figures can explain
_LEAST_FIGURES = 2  # own: a single accuracy may be the same by chance
_ROUNDED = 1e-5  # relative, of figures of the same weights; a late training moves its figures by less than `_LIMIT` between evaluations
_MOST_BYTES = 32 << 20
_LEAST_DIGITS = 3
_LIMIT = 1e-3  # relative: what rounding makes of a mean is far less
_PLACES = 1.5  # of the last digit that is printed: the same value may be rounded up once and down once
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DATES = re.compile(r"\d+(?:[-:/.]\d+){2,}(?:[.,]\d+)?|\d+:\d+(?:\.\d+)?|0x[0-9a-fA-F]+")  # dates, times of day, versions, addresses
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_OF_THE_MACHINE = frozenset(
    re.findall(
        r"\w+",
        """time times eta elapsed duration took takes sec secs second seconds min mins minute minutes hour hours ms us ns dt wall clock
        remaining left since speed speedup throughput latency fps ips qps tps hz memory mem ram vram rss gpu cpu cuda device alloc
        allocated reserved peak date today now timestamp started finished bandwidth flops tflops gflops mfu hfu util utilization temp
        temperature power watt watts io disk kb mb gb tb kib mib gib tib byte bytes energy joule joules pid port""",
    )
)
_UNIT = re.compile(
    r"\s?(?:[µun]?s|ms|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|[kKMGT]i?[bB]?|[Bb]ytes|B|W|J|[kKMGT]?Hz|[kKMGT]?FLOPS?/?s?|x|×|°?C)(?![a-zA-Z])"
    r"|\s?[a-zA-Z]*\s?/\s?(?:[µun]?s|ms|secs?|seconds?|mins?|h|hours?|it|iter|step|batch|epoch)(?![a-zA-Z])",
    re.IGNORECASE,
)
Slot = tuple[str, int]  # words of a line, and the number's place in it
Lines = dict[str, list[tuple[str, ...]]]


@dataclass(frozen=True)
class Difference:
    """Where a number of the candidate first differs."""

    slot: Slot
    line: int
    old: str
    new: str

    def __str__(self) -> str:
        words, place = self.slot
        first, *others = words.split("#")
        shown = first + "".join((f"{self.old} → {self.new}" if at == place else "…") + piece for at, piece in enumerate(others))
        return f"“{' '.join(shown.split())[:120]}”"


def read(log: Path) -> Lines:
    """All lines of an output by their words, in order; empty where it cannot be read."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return {}
    found: Lines = {}
    for line in re.split(r"[\r\n]+", _ESCAPES.sub("", text)):
        plain = _DATES.sub("@", line.replace("#", " "))
        numbers = tuple(_NUMBER.findall(plain))
        if numbers:
            found.setdefault(_NUMBER.sub("#", plain), []).append(tuple(numbers))
    return found


def _of_run(run: Run) -> Lines:
    """What a run printed, and what it wrote into text files, whose lines begin with the kind of their file's name."""
    found = read(run.log)
    for kind, path in written.texts(run):
        for words, lines in read(path).items():
            found.setdefault(f"{kind.replace('#', '*')}: {words}", []).extend(lines)
    return found


def differences(old: Lines, new: Lines, *, whole: bool) -> list[Difference]:
    """The first difference of each number that both print. `whole`: both ran to their own end, so equal words must come equally often."""
    found = []
    for words in old.keys() & new.keys():
        if whole and len(old[words]) != len(new[words]):
            continue
        for place in _telling(words):
            lines = enumerate(zip(old[words], new[words], strict=False), start=1)
            other = next((Difference((words, place), n, a[place], b[place]) for n, (a, b) in lines if _differ(a[place], b[place])), None)
            found += [other] if other else []
    return sorted(found, key=lambda each: each.slot)


def _telling(words: str) -> list[int]:
    """Places of the numbers that neither the words before them nor the unit behind them give to the machine."""
    pieces = words.split("#")
    before = [pieces[0], *(_UNIT.sub("", piece, count=1) if _UNIT.match(piece) else piece for piece in pieces[1:])]
    return [
        place
        for place in range(len(pieces) - 1)
        if not _OF_THE_MACHINE & {word.lower() for word in _WORDS.findall(before[place])} and not _UNIT.match(pieces[place + 1])
    ]


def _differ(old: str, new: str, limit: float = _LIMIT) -> bool:
    if old == new or not all(set(text) & set(".eE") and _digits(text) >= _LEAST_DIGITS for text in (old, new)):
        return False
    a, b = float(old), float(new)
    return math.isfinite(a - b) and abs(a - b) > max(limit * max(abs(a), abs(b)), _PLACES * max(_place(old), _place(new)))


def _digits(text: str) -> int:
    return len(re.split("[eE]", text)[0].lstrip("+-0.").replace(".", ""))


def _place(text: str) -> float:
    """What the last digit stands for."""
    mantissa, _, exponent = text.lower().partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


def judge(found: Fidelity, old: Run, new: Run, *, whole: bool, run: Callable[[str], Run | None]) -> Fidelity:
    """`found`, with what the two outputs say. `run` makes a further run of the baseline: `rerun` or `nudged-bfloat16`."""
    ours = _of_run(old)
    other = differences(ours, _of_run(new), whole=whole)
    if not other:
        return found
    again = run("rerun")
    if again is None:
        return _noted(found, other)
    repeated = _of_run(again)
    other = [each for each in other if _repeats(ours, each, repeated) is not False]
    steady = [each for each in other if _repeats(ours, each, repeated)]
    nudged = run("nudged-bfloat16") if steady else None
    moved = _of_run(nudged) if nudged is not None else {}
    proven = [each for each in steady if _repeats(ours, each, moved) is False]
    if not proven:
        return _noted(found, other) if other else found
    first = proven[0]
    evidence = f"{first}, line {first.line} of its kind; the baseline prints it again each time, and another value only with other weights"
    check = Check(CHECK, False, evidence)
    changed = tuple(dict.fromkeys((*found.changed, "evaluation")))
    return replace(found, verdict="changed", changed=changed, checks=(*found.checks, check), reasons=(f"{CHECK}: {evidence}",))


def vouched(found: Fidelity, old: Run, new: Run, control: Run, *, whole: bool) -> Fidelity:
    """`found` without what evaluations were held against it for, where all figures that come from evaluations are the baseline's.

    `control` is a run of the baseline that trained the same and evaluated other weights: a number that it prints otherwise comes from an
    evaluation. Untouched where there are too few such numbers, or the candidate lacks one of them.
    """
    ours, theirs, moved = map(_of_run, (old, new, control))
    numbers: set[str] = set()
    shown = ""
    for words in sorted(ours.keys() & moved.keys()):
        for place in _telling(words):
            both = zip(ours[words], moved[words], strict=False)
            figures = [a[place] for a, b in both if _differ(a[place], b[place])]
            if not figures:
                continue
            answers = theirs.get(words, [])
            fewer = len(answers) != len(ours[words]) if whole else len(answers) < len(ours[words])
            if fewer or any(_differ(a[place], b[place], _ROUNDED) for a, b in zip(ours[words], answers, strict=False)):
                return found
            numbers.update(figures)
            shown = shown or words.split("#")[place].strip()
    if len(numbers) < _LEAST_FIGURES:
        return found
    evidence = f"evaluations are made in another way, and come to the same: {len(numbers)} figures of theirs, such as “{shown[-60:]}”"
    checks = tuple(replace(check, ok=None) if check.ok is False else check for check in found.checks)
    reasons = (f"losses and weights of {found.updates} updates are bitwise the same", evidence)
    return replace(found, verdict="same", changed=(), checks=(*checks, Check(VOUCHED, True, evidence)), reasons=reasons)


def is_vouched(found: Fidelity) -> bool:
    """Whether evaluations that are made in another way were let through for their figures."""
    return any(check.name == VOUCHED for check in found.checks)


def _repeats(ours: Lines, difference: Difference, other: Lines) -> bool | None:
    """Whether another run prints all numbers of that place again, at least up to the line; None if it does not come that far."""
    words, place = difference.slot
    both = list(zip(ours[words], other.get(words, ()), strict=False))
    if any(a[place] != b[place] for a, b in both):
        return False
    return True if len(both) >= difference.line else None


def _noted(found: Fidelity, other: list[Difference]) -> Fidelity:
    more = f" and {len(other) - 1} more" if len(other) > 1 else ""
    return replace(found, notes=(*found.notes, f"printed values differ though the training is the same: {other[0]}{more}"))
