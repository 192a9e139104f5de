"""Which of the candidate's changed lines never ran in what was compared: no comparison speaks for those.

Where a change holds statements that may have been passed by (`changed_lines`), the candidate trains once more, as far as it was compared,
under a probe that notes which of them run (`record/ran.py`), and is stopped as soon as all of them did. Nothing of this run is compared. A
line counts as run in whatever process it ran. Nothing is said of code that was compiled, of functions that only a thread of a device may
have entered, and of the whole change where a process that trained was not traced, the program traces itself, or the run did not get as far.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainflash.fidelity import changed_lines, reuse
from trainflash.fidelity.attempt import Attempt, Starter, pause
from trainflash.fidelity.changed_lines import Source, Span, Statement
from trainflash.fidelity.reuse import Kept, Run
from trainflash.schema import Command, Fidelity

NAME = "lines"
VARIABLE = "TRAINFLASH_LINES"
_QUESTION = "lines.json"
_MOST = 12  # entries of `not_seen`
_LONGEST = 100_000  # bytes of a variable in an environment
_UNTOLD = "which of the changed lines ran could not be told"
_NEVER_RAN = (
    "changed lines stand among what was not seen: they never ran, so nothing speaks for them; a longer command, or more budget, would "
    "show what they do"
)


@dataclass(frozen=True)
class Shelf:
    """Folder of the candidate's runs; with `resume` a run that was made for the same question counts."""

    directory: Path
    key: str | None
    resume: bool


@dataclass(frozen=True)
class Seen:
    """What the processes of a run noted. All by the path of a file."""

    ran: frozenset[tuple[str, Span]] = frozenset()
    entered: frozenset[tuple[str, int]] = frozenset()  # functions, by their first lines
    compiled: tuple[tuple[str, Span], ...] = ()
    device: bool = False  # torch computes gradients in threads that cannot be traced
    unsure: bool = False
    traced: frozenset[str] = frozenset()  # process ids


def judge(
    found: Fidelity, allowed: frozenset[str], starter: Starter, command: Command, shelf: Shelf, compared: Run, deadline_s: float
) -> Fidelity:
    """`found`, with the changed lines that never ran among what was not seen; untouched where it refuses the candidate anyway.

    `compared` is the candidate's run as it was compared.
    """
    if found.verdict == "inconclusive" or not set(found.changed) <= allowed | {"numerics"}:
        return found
    record = compared.record
    sources = changed_lines.find(starter.sandbox, command, whole=record.whole)
    if not sources:
        return found
    question = json.dumps({source.path: sorted({each.watched for each in source.statements}) for source in sources})
    if len(question) > _LONGEST:
        return replace(found, notes=(*found.notes, f"{_UNTOLD}: the change is too large"))
    run_dir = _kept(shelf, starter, question)
    if run_dir is None:
        run_dir, trouble = _run(starter, command, shelf, sources, question, None if record.whole else record.updates, deadline_s)
        if trouble:
            return replace(found, notes=(*found.notes, f"{_UNTOLD}: {trouble}"))
    return _said(found, sources, read(run_dir), [path.stem.partition("-")[2] for path in run_dir.glob("training-*.jsonl")])


def _said(found: Fidelity, sources: Sequence[Source], seen: Seen, trained: Sequence[str]) -> Fidelity:
    entries = [entry for source in sources for entry in never_ran(source, seen)]
    if not entries:
        return found
    if seen.unsure or not seen.traced.issuperset(trained):
        return replace(found, notes=(*found.notes, f"{_UNTOLD}: the program traces itself, or a process of it could not be traced"))
    more = (f"{len(entries) - _MOST} more places",) if len(entries) > _MOST else ()
    return replace(found, not_seen=(*found.not_seen, *entries[:_MOST], *more), notes=(*found.notes, _NEVER_RAN))


def never_ran(source: Source, seen: Seen) -> tuple[str, ...]:
    """The stretches of a file that never ran; the file alone, where nothing imported it."""
    if not any(path == source.path for path, _ in seen.entered):
        return (source.path,)
    return source.ranges(each for each in source.statements if _surely_not(source.path, each, seen))


def _surely_not(path: str, each: Statement, seen: Seen) -> bool:
    if (path, each.watched) in seen.ran or (seen.device and each.function is not None and (path, each.function) not in seen.entered):
        return False
    return not any(name == path and first <= each.watched[1] and each.watched[0] <= last for name, (first, last) in seen.compiled)


def _run(
    starter: Starter, command: Command, shelf: Shelf, sources: Sequence[Source], question: str, target: int | None, deadline_s: float
) -> tuple[Path, str]:
    """One more run of the candidate, until all lines ran: its folder, and why it tells nothing."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {os.path.normpath(os.path.join(starter.sandbox.prefix, source.path)): source.text for source in sources if source.text}
        for name, text in texts.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        attempt = starter.start(
            NAME, "candidate", command, shelf.directory, environment={VARIABLE: question}, carry=Path(folder) if texts else None
        )
    try:
        arrived = _follow(starter, attempt, sources, target, deadline_s)
    finally:
        attempt.end()
    if attempt.failed:
        return attempt.run_dir, "the candidate failed when it was traced"
    if not arrived:
        return attempt.run_dir, f"traced, the candidate made {attempt.record.updates} updates in {attempt.seconds:.0f} s and was stopped"
    (attempt.run_dir / _QUESTION).write_text(question, encoding="utf-8")
    kept = Kept(attempt.run_dir.name, attempt.record.whole, attempt.seconds)
    reuse.keep(shelf.directory, shelf.key, starter.updates, {NAME: kept}, first="candidate")
    return attempt.run_dir, ""


def _follow(starter: Starter, attempt: Attempt, sources: Sequence[Source], target: int | None, deadline_s: float) -> bool:
    """False: it was too slow."""
    while attempt.running():
        starter.tell((attempt,), target)
        seen = read(attempt.run_dir)
        if not any(never_ran(source, seen) for source in sources) or (target is not None and attempt.record.updates >= target):
            attempt.stop()
        elif attempt.seconds > deadline_s:
            attempt.stop()
            return False
        pause()
    return True


def _kept(shelf: Shelf, starter: Starter, question: str) -> Path | None:
    """Folder of a run that answers the question already."""
    run = reuse.load(shelf.directory, shelf.key, starter.updates, first="candidate").get(NAME) if shelf.resume else None
    if run is None:
        return None
    asked = run.log.parent / _QUESTION
    return asked.parent if asked.is_file() and asked.read_text(encoding="utf-8") == question else None


def read(run_dir: Path) -> Seen:
    """What the processes of a run have written so far."""
    lines = [(path.stem.partition("-")[2], line) for path in sorted(run_dir.glob("ran-*.jsonl")) for line in _lines(path)]
    return Seen(
        ran=frozenset((line["file"], _span(line)) for _, line in lines if line["k"] == "ran"),
        entered=frozenset((line["file"], int(line["line"])) for _, line in lines if line["k"] == "in"),
        compiled=tuple((line["file"], _span(line)) for _, line in lines if line["k"] == "compiled"),
        device=any(line["k"] == "device" for _, line in lines),
        unsure=any(line["k"] == "unsure" for _, line in lines),
        traced=frozenset(pid for pid, line in lines if line["k"] == "begun"),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """A last line that a kill has torn is left out."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            yield json.loads(line)
        except ValueError:
            yield {"k": "unsure"}


def _span(line: dict[str, Any]) -> Span:
    return int(line["lines"][0]), int(line["lines"][1])
