"""One trial of a candidate: train both sides under the recorder, side by side and untimed, and compare what they did.

The cheapest order that can still refuse: baseline and candidate start together and are followed while they train; a candidate with a
difference that nobody can have meant is refused at the first look. Only what is not bitwise the same makes the baseline train again,
once as it is and once with its weights nudged, to learn what of the difference is the program's own noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.errors import ProgramFailed
from trainflash.fidelity import judgement, reuse
from trainflash.fidelity.attempt import Attempt, Bounds, Progress, Starter, pause
from trainflash.fidelity.pairing import seen_occasions
from trainflash.fidelity.record import Record
from trainflash.fidelity.reuse import Kept
from trainflash.schema import Check, Command, Fidelity, Sandbox

# Differences that nobody can have meant: such a candidate is not trained any further.
_HOPELESS = frozenset({"mode", "optimizer", "coverage", "targets", "evaluation", "checkpoint"})
# Differences that rounding cannot make: then the nudge has nothing to explain.
_NEVER_ROUNDING = frozenset({"updates", "batch", "shape", "mode", "optimizer", "coverage"})
_SEEN_MARGIN = 1.1


def check(
    sandbox: Sandbox,
    baseline: Command,
    candidate: Command,
    directory: Path,
    *,
    tolerance: float = 1e-3,
    updates: int | None = None,
    on_progress: Progress | None = None,
    baseline_record: Path | None = None,
    bounds: Bounds | None = None,
    online: bool = False,
    writable: Sequence[str] = (),
    redact: Callable[[str], str] | None = None,
) -> Fidelity:
    """Does the candidate (`worktree/` as it stands) still train the same as the baseline (`baseline/` as it stands)?

    Runs go into folders of `directory`. `updates` optimizer updates are compared; None: the whole program when it ends within
    `bounds.whole_s`, else until an epoch boundary, an evaluation, a checkpoint and a schedule change were seen or `bounds.most_s` is over.
    `baseline_record` is a folder, shared by experiments, that keeps the baseline's runs for the same commit and command.
    A candidate that crashes, hangs or trains less is a verdict, not an exception. Raises `ProgramFailed` when the baseline does not
    train, `UsageError` when a command cannot be started.
    """
    bounds = bounds or Bounds()
    starter = Starter(sandbox, updates, bounds, on_progress, online, writable, redact)
    place = baseline_record or directory
    trial = _Trial(starter, baseline, candidate, directory, place, reuse.key_of(sandbox, baseline) if baseline_record else None)
    return trial.verdict(tolerance)


@dataclass(frozen=True)
class _Sides:
    """Both records of a trial; `trouble` says how the candidate failed to get as far as the baseline."""

    baseline: Record
    candidate: Record
    baseline_s: float
    refused_early: bool
    trouble: Check | None = None


@dataclass(frozen=True)
class _Trial:
    starter: Starter
    baseline: Command
    candidate: Command
    directory: Path
    place: Path  # of the baseline's runs
    key: str | None

    def verdict(self, tolerance: float) -> Fidelity:
        kept = reuse.load(self.place, self.key, self.starter.updates)
        sides = self._beside(*kept["baseline"]) if kept else self._together()
        found = judgement.compare(sides.baseline, sides.candidate, tolerance=tolerance)
        if sides.trouble is not None:
            return _troubled(found, sides.trouble)
        if found.verdict == "same" or not found.updates:
            return found
        rerun, nudged = self._noise(sides, kept, nudge=not _NEVER_ROUNDING & set(found.changed))
        return judgement.compare(sides.baseline, sides.candidate, tolerance=tolerance, rerun=rerun, nudged=nudged)

    def _together(self) -> _Sides:
        """Both at once; where one fails, which two programs that want the same port or device may, one after the other."""
        old = self.starter.start("baseline", "baseline", self.baseline, self.place)
        new = None
        try:
            new = self.starter.start("candidate", "candidate", self.candidate, self.directory)
            refused = self._follow(old, new)
            if old.failed:
                new.end()
                old.end()
                old = self.starter.start("baseline", "baseline", self.baseline, self.place)
                self._lead(old)
                new = None
            self._must_train(old)
            self._keep(old, "baseline", whole_question=not refused)
            new = self._candidate_alone(old, new) if new is None or new.failed else new
            return _Sides(old.record, new.record, old.seconds, refused, None if refused else _trouble(old.record, new))
        finally:
            for attempt in (old, new):
                if attempt is not None:
                    attempt.end()

    def _beside(self, record: Record, seconds: float) -> _Sides:
        """The candidate alone, against a baseline that was recorded earlier."""
        new = self._run_candidate(record, seconds)
        if new.failed:
            new = self._run_candidate(record, seconds)
        return _Sides(record, new.record, seconds, False, _trouble(record, new))

    def _candidate_alone(self, old: Attempt, failed: Attempt | None) -> Attempt:
        """Its own try after a failure; one more if that comes farther and fails too, as ranks do that abort while they take leave."""
        old.end()
        before = failed.record.updates if failed is not None else 0
        if failed is not None:
            failed.end()
        new = self._run_candidate(old.record, old.seconds)
        return self._run_candidate(old.record, old.seconds) if new.failed and new.record.updates > before else new

    def _run_candidate(self, record: Record, seconds: float) -> Attempt:
        attempt = self.starter.start("candidate", "candidate", self.candidate, self.directory)
        try:
            self.starter.reach([attempt], None if record.whole else record.updates, self._deadline(seconds))
        finally:
            attempt.end()
        return attempt

    def _follow(self, old: Attempt, new: Attempt) -> bool:
        """Train until the baseline has shown enough and the candidate has come as far. True: the candidate was refused on the way."""
        look = self.starter.bounds.first_look
        while old.running():
            self.starter.tell((old, new), self.starter.updates)
            if self._enough(old):
                old.stop()
                break
            ahead = min(old.record.updates, new.record.updates)
            if ahead >= look:
                if self._hopeless(old, new):
                    return True
                look = 2 * ahead
            pause()
        if old.failed or new.failed:
            return False
        record = old.record
        self.starter.reach([new], None if record.whole else record.updates, self._deadline(old.seconds))
        return False

    def _lead(self, old: Attempt) -> None:
        """The baseline alone, until it has shown enough."""
        while old.running():
            self.starter.tell((old,), self.starter.updates)
            if self._enough(old):
                old.stop()
            pause()

    def _enough(self, old: Attempt) -> bool:
        bounds, record = self.starter.bounds, old.record
        if self.starter.updates is not None:
            return record.updates >= self.starter.updates
        if not record.updates:
            return old.seconds > bounds.first_update_s
        if old.seconds > bounds.most_s:
            return True
        if old.seconds < bounds.whole_s or not old.due():
            return False
        part = int(record.updates / _SEEN_MARGIN)
        return all(len(seen_occasions(stream, part, False)) == len(judgement.OCCASIONS) for stream in record.streams)

    def _hopeless(self, old: Attempt, new: Attempt) -> bool:
        found = judgement.hard_changes(replace(old.record, whole=False), replace(new.record, whole=False))
        if not found & _HOPELESS:
            return False
        old.stop()
        new.stop()
        return True

    def _deadline(self, baseline_s: float) -> float:
        bounds = self.starter.bounds
        return max(bounds.least_patience_s, bounds.patience * baseline_s)

    def _must_train(self, old: Attempt) -> None:
        """Raises `ProgramFailed` when the baseline failed, or ended without one optimizer update."""
        failed, record = old.failed, old.record
        if not failed and record.updates:
            return
        result = old.end()
        command = " ".join(result.command.argv)  # as the record shows it: without secrets
        if failed:
            what, mend = f"failed with exit code {result.returncode}", "its own output is shown; make it run by hand first"
        else:
            what, mend = "never completed an optimizer update", "fidelity needs a PyTorch program that calls optimizer.step()"
        raise ProgramFailed(f"the baseline {what}: {command}", mend, returncode=result.returncode, output=result.output_tail)

    def _noise(self, sides: _Sides, kept: dict[str, tuple[Record, float]], *, nudge: bool) -> tuple[Record | None, Record | None]:
        """The baseline again, and nudged, as far as the trial went; a run that fails tells nothing."""
        wanted = [name for name in ("rerun", "nudged") if name not in kept and (nudge or name == "rerun")]
        target = None if sides.baseline.whole else min(sides.baseline.updates, sides.candidate.updates)
        attempts: list[Attempt] = []
        try:
            for name in wanted:
                attempts.append(self.starter.start(name, "baseline", self.baseline, self.place, nudge=name == "nudged"))
            if attempts:
                self.starter.reach(attempts, target, self._deadline(sides.baseline_s))
            records = {attempt.name: attempt.record for attempt in attempts if not attempt.failed}
            for attempt in attempts:
                if not attempt.failed:
                    self._keep(attempt, attempt.name, whole_question=not sides.refused_early)
        finally:
            for attempt in attempts:
                attempt.end()
        found = {name: record for name, (record, _) in kept.items()} | records
        return found.get("rerun"), found.get("nudged")

    def _keep(self, attempt: Attempt, name: str, *, whole_question: bool) -> None:
        if whole_question:
            run = Kept(attempt.run_dir.name, attempt.record.whole, attempt.seconds)
            reuse.keep(self.place, self.key, self.starter.updates, {name: run})


def _trouble(baseline: Record, new: Attempt) -> Check | None:
    """How the candidate ended, if it did not get as far as the baseline by its own fault."""
    made = new.record.updates
    if new.failed:
        result = new.end()
        last = result.output_tail.strip().splitlines()[-1:] or ["no output"]
        return Check("exit code", False, f"the candidate failed with exit code {result.returncode} after {made} updates: {last[0]}")
    if new.cut and (baseline.whole or made < baseline.updates):
        evidence = f"the candidate made {made} of {baseline.updates} updates in {new.seconds:.0f} s and was stopped"
        return Check("time", None, evidence)
    return None


def _troubled(found: Fidelity, trouble: Check) -> Fidelity:
    """A candidate that crashed has changed; one that was too slow to compare leaves it open, unless a difference was seen already."""
    crashed = trouble.ok is False
    changed = tuple(dict.fromkeys((*found.changed, *(("failed",) if crashed else ()))))
    verdict = "changed" if crashed or found.verdict == "changed" else "inconclusive"
    reasons = (trouble.evidence, *(found.reasons if found.verdict == "changed" else ()))
    return replace(found, verdict=verdict, changed=changed, checks=(trouble, *found.checks), reasons=reasons)
