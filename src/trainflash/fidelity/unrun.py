"""Which of the candidate's changed lines never ran in what was compared: no comparison speaks for those.

Where a change holds statements that may have been passed by (`changed_lines`), the candidate trains once more, as far as it was compared,
under a probe that notes which of them run (`record/ran.py`), and is stopped as soon as all of them did. Nothing of this run is compared. A
line counts as run in whatever process it ran. Where some did not, and the check can afford it, the run goes on: lines that run later, as
those of an evaluation, say how far both sides would have to be compared. Nothing is said of code that was compiled, of functions that
only a thread of a device may have entered, and of the whole change where a process that trained was not traced, the program traces itself,
or the run did not get as far.
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
_NOT_OF_IT = "changed lines that never ran in the whole of this command, and that nothing speaks for"
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


@dataclass(frozen=True)
class Look:
    """How far a run is followed: `target` updates are compared (None: the whole program); `reach` could be, in `further_s` seconds."""

    target: int | None
    reach: int
    deadline_s: float
    further_s: float


@dataclass(frozen=True)
class Watched:
    """What a run told: what had run where the comparison ended, and after how many updates the last line ran that ran later; 0: none."""

    seen: Seen
    later: int = 0


def judge(
    found: Fidelity,
    allowed: frozenset[str],
    starter: Starter,
    command: Command,
    shelf: Shelf,
    compared: Run,
    deadline_s: float,
    reach: int = 0,
) -> tuple[Fidelity, int]:
    """`found`, with the changed lines that never ran among what was not seen; untouched where it refuses the candidate anyway.

    `compared` is the candidate's run as it was compared. Beside it: after how many updates, `reach` at most, the last of the changed lines
    ran that had not when the comparison ended; 0 where none did.
    """
    if found.verdict == "inconclusive" or not set(found.changed) <= allowed | {"numerics"}:
        return found, 0
    record = compared.record
    sources = changed_lines.find(starter.sandbox, command, whole=record.whole)
    if not sources:
        return found, 0
    question = json.dumps({source.path: sorted({each.watched for each in source.statements}) for source in sources})
    if len(question) > _LONGEST:
        return replace(found, notes=(*found.notes, f"{_UNTOLD}: the change is too large")), 0
    further_s = max(starter.bounds.most_s, starter.bounds.least_patience_s)
    look = Look(None if record.whole else record.updates, reach, deadline_s, further_s)
    kept = _kept(shelf, starter, question, look)
    if kept is not None:
        run_dir, watched = kept, Watched(read(kept))
    else:
        run_dir, watched, trouble = _run(starter, command, shelf, sources, question, look)
        if watched is None:
            return replace(found, notes=(*found.notes, f"{_UNTOLD}: {trouble}")), 0
    trained = [path.stem.partition("-")[2] for path in run_dir.glob("training-*.jsonl")]
    settled = record.whole and any(stream.seeded for stream in record.trained)
    return _said(found, sources, watched.seen, trained, settled=settled), watched.later


def _said(found: Fidelity, sources: Sequence[Source], seen: Seen, trained: Sequence[str], *, settled: bool) -> Fidelity:
    """`settled`: the whole program was seen, and it sets its seed: what never ran is not of this command, and is a note."""
    entries = [entry for source in sources for entry in never_ran(source, seen)]
    if not entries:
        return found
    if seen.unsure or not seen.traced.issuperset(trained):
        return replace(found, notes=(*found.notes, f"{_UNTOLD}: the program traces itself, or a process of it could not be traced"))
    more = (f"{len(entries) - _MOST} more places",) if len(entries) > _MOST else ()
    if settled:
        return replace(found, notes=(*found.notes, f"{_NOT_OF_IT}: {', '.join((*entries[:_MOST], *more))}"))
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
    starter: Starter, command: Command, shelf: Shelf, sources: Sequence[Source], question: str, look: Look
) -> tuple[Path, Watched | None, str]:
    """One more run of the candidate, until all lines ran: its folder, what it told, or why it tells nothing."""
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
        watched = _follow(starter, attempt, sources, look)
    finally:
        attempt.end()
    if attempt.failed:
        return attempt.run_dir, None, "the candidate failed when it was traced"
    made = attempt.record.updates
    if watched is None:
        return attempt.run_dir, None, f"traced, the candidate made {made} updates in {attempt.seconds:.0f} s and was stopped"
    speaks_for = watched.later or (made if look.target is None else min(made, look.target))  # what is noted ran within so many updates
    (attempt.run_dir / _QUESTION).write_text(json.dumps([question, speaks_for]), encoding="utf-8")
    kept = Kept(attempt.run_dir.name, attempt.record.whole, attempt.seconds)
    reuse.keep(shelf.directory, shelf.key, starter.updates, {NAME: kept}, first="candidate")
    return attempt.run_dir, watched, ""


def _follow(starter: Starter, attempt: Attempt, sources: Sequence[Source], look: Look) -> Watched | None:
    """None: it was too slow."""
    at_target: Seen | None = None
    missing, later, deadline_s = 0, 0, look.deadline_s
    while attempt.running():
        starter.tell((attempt,), look.target)
        seen, made = read(attempt.run_dir), attempt.record.updates
        left = sum(len(never_ran(source, seen)) for source in sources)
        if at_target is not None and left < missing:
            later = made
        if at_target is None and look.target is not None and made >= look.target:
            at_target, deadline_s = seen, attempt.seconds + look.further_s
        missing = left
        if not left or (at_target is not None and made >= look.reach):
            attempt.stop()
        elif attempt.seconds > deadline_s:
            attempt.stop()
            if at_target is None:
                return None
        pause()
    return Watched(at_target or read(attempt.run_dir), later)


def _kept(shelf: Shelf, starter: Starter, question: str, look: Look) -> Path | None:
    """Folder of a run that answers the question already: it went no further than was compared."""
    run = reuse.load(shelf.directory, shelf.key, starter.updates, first="candidate").get(NAME) if shelf.resume else None
    asked = run.log.parent / _QUESTION if run is not None else None
    if asked is None or not asked.is_file():
        return None
    was, updates = json.loads(asked.read_text(encoding="utf-8"))
    return asked.parent if was == question and (look.target is None or updates <= look.target) else None


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
