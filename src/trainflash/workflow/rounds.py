"""Several experiments at once: each in a sandbox of its own on the same state, as an array of jobs; the best one is kept.

One sandbox has one worktree and one lock, so experiments that run at the same time cannot share it. Each gets a copy of what is accepted
and of the diagnosis, and is judged there whole by `optimize try`: both sides of its pairs in one job. What came of it is then written
down in the sandbox that asked. Two changes that were each proven alone are not proven together: only the best is accepted.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import launch, view
from trainflash import sandbox as sandboxes
from trainflash.errors import UsageError
from trainflash.schema import Candidate, Command, Experiment, Sandbox, Verdict, write_document
from trainflash.workflow import diagnosing, moving, optimizing, verifying
from trainflash.workflow.session import Session, some_of
from trainflash.workflow.verifying import Demands

BESIDE = "it was proven alone, on the state before experiment {n}, which was better: try it again on top of that"


@dataclass(frozen=True)
class Tried:
    """One experiment of the round and the sandbox it is judged in."""

    knob: str  # as it was typed
    candidate: Candidate
    directory: Path


Run = Callable[[Sequence[Tried]], Sequence[str]]  # judges each in its sandbox; what went wrong, "" where nothing did


def at_once(session: Session, knobs: Sequence[str], command: Command, demands: Demands, run: Run) -> tuple[Experiment, ...]:
    """Judge `knobs` (KNOB or KNOB=VALUE) on the state that is accepted now, and keep the best that is proven.

    Raises `UsageError`, before anything is tried, for a knob that does not apply or is named twice, and a project that was edited since
    the sandbox was made.
    """
    if changed := sandboxes.drifted(session.sandbox):
        raise UsageError(f"the project was edited since the sandbox was made ({some_of(changed)})", "make a new sandbox first")
    verifying.complete_log(session)
    parts = [knob.partition("=") for knob in knobs]
    candidates = [optimizing.propose(session, name, value or None, None, command) for name, _, value in parts]
    twice = [knob for at, knob in enumerate(knobs) if any(same(candidates[at], other) for other in candidates[:at])]
    if twice:
        raise UsageError(f"{twice[0]} makes the same change as another of them", "name each change once")
    with _sandboxes(session, knobs, candidates, command) as tried:
        faults = run(tried)
        return _written_down(session, tried, faults, command, demands)


def same(one: Candidate, other: Candidate) -> bool:
    return (one.diff, one.environment, one.words) == (other.diff, other.environment, other.words)


@contextlib.contextmanager
def _sandboxes(session: Session, knobs: Sequence[str], candidates: Sequence[Candidate], command: Command) -> Iterator[list[Tried]]:
    """A sandbox for each, removed in the end: what it held is in the log by then."""
    place = session.directory / "round"
    shutil.rmtree(place, ignore_errors=True)
    made: list[Sandbox] = []
    try:
        for n, _ in enumerate(candidates, start=1):
            session.on_progress("making sandboxes", n, len(candidates))
            made.append(_copy(session, place / str(n), command))
        yield [Tried(knob, each, Path(box.directory)) for knob, each, box in zip(knobs, candidates, made, strict=True)]
    finally:
        for box in made:
            sandboxes.discard(box, everything=True)
        shutil.rmtree(place, ignore_errors=True)


def _copy(session: Session, base: Path, command: Command) -> Sandbox:
    """A sandbox in the state of `session`: what is accepted, as one experiment, and the newest diagnosis of the command."""
    box = sandboxes.create(Path(session.sandbox.project), base, protect=view.protection)
    mine = Session(box)
    launch.hand_on(session.sandbox, box)
    accepted = session.accepted()
    if accepted:
        text = sandboxes.diff(session.sandbox, session.sandbox.base_ref, session.tip())
        said = "what was accepted before"
        commit = sandboxes.commit_diff(box, text, said) if text.strip() else sandboxes.commit_nothing(box, said)
        environment = {name: value for one in accepted for name, value in one.environment.items()}
        words = tuple(word for one in accepted for word in one.words)
        mine.save(replace(accepted[-1], n=1, parent=None, commit=commit, parent_commit=box.base_ref, environment=environment, words=words))
    known = diagnosing.latest(session, command)
    if known is not None:
        source, target = session.run_dir(known[0].run), mine.directory / "runs" / known[0].run
        target.mkdir(parents=True)
        diagnosis, summary = moving.onto_tip(session, *known)
        shutil.copyfile(source / "run.json", target / "run.json")
        write_document(target / "summary.json", summary)
        write_document(target / "findings.json", diagnosis)
    return box


def _written_down(
    session: Session, tried: Sequence[Tried], faults: Sequence[str], command: Command, demands: Demands
) -> tuple[Experiment, ...]:
    """The experiments in the sandbox that asked, all on the same parent; accepted is the one with the largest proven gain."""
    made = [optimizing.make(session, each.candidate, command, demands) for each in tried]
    judged = [_judged(each, one, fault) for each, one, fault in zip(tried, made, faults, strict=True)]
    best = max((at for at, one in enumerate(judged) if one.verdict == "accept"), key=lambda at: judged[at].gain, default=None)
    settled = []
    for at, (one, found) in enumerate(zip(made, judged, strict=True)):
        if found.verdict == "accept" and best is not None and at != best:
            found = replace(found, verdict="inconclusive", reasons=(BESIDE.format(n=made[best].n), *found.reasons))
        settled.append(verifying.settle(session, one, found, None))
    session.rest()
    return tuple(settled)


def _judged(tried: Tried, one: Experiment, fault: str) -> Verdict:
    """The verdict that the experiment got in its own sandbox, if it was about this very change."""
    theirs = Session(sandboxes.load(tried.directory)).experiments()
    newest = theirs[-1] if theirs else None
    about_this = newest is not None and all(getattr(newest, name) == getattr(one, name) for name in ("diff_digest", "environment", "words"))
    if newest is not None and about_this and newest.verdict is not None:
        return newest.verdict
    return Verdict(verdict="inconclusive", speedup=None, fidelity=None, starts=0, reasons=(fault or "it was not judged",))
