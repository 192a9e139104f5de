"""One trial of a candidate: train both sides under the recorder, side by side and untimed, and compare what they did.

The cheapest order that can still refuse: baseline and candidate start together and are followed while they train; a candidate with a
difference that nobody can have meant is refused at the first look. Only what is not bitwise the same makes the baseline train again,
once as it is and some times with its weights nudged, to learn what of the difference is the program's own noise. Only where single updates
cannot be compared, by the owner's leave or because the program does not repeat itself, it trains some times more, to learn how far
chance alone moves a whole run. What passes all that is started again from its checkpoint, if the program does that by itself, and once
more where changed lines may never have run.

Where nothing but a change in kind stands against the candidate to which the owner may agree yet, it is compared once more as if he had,
from the runs that are there and those that this takes: what he is asked is then answered. Each further run is started only if the check can
afford it (`Bounds`); where it cannot, the verdict is open and says what it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import launch
from trainflash.errors import ProgramFailed
from trainflash.fidelity import judgement, printed, restarting, reuse, unrun, written
from trainflash.fidelity.attempt import SEED, Attempt, Bounds, OutOfTime, Progress, Starter, pause
from trainflash.fidelity.metric import Metric
from trainflash.fidelity.pairing import seen_occasions
from trainflash.fidelity.record import Record
from trainflash.fidelity.reuse import Kept, Run
from trainflash.schema import Check, Command, Fidelity, Sandbox

# Differences that nobody can have meant: such a candidate is not trained any further.
_HOPELESS = frozenset({"mode", "optimizer", "coverage", "targets", "evaluation", "checkpoint"})
# Differences that rounding cannot make: the nudge has nothing to explain, unless the owner agrees to them and the rest may be rounding.
_NEVER_ROUNDING = frozenset({"updates", "batch", "shape", "mode", "optimizer", "coverage"})
_PORTIONED = frozenset({"batch", "shape"})  # of these what the same gradients explain
_OTHER_STEPS = frozenset({"updates", "batch", "coverage"})  # what is written by the step is written at other places
# What differs from run to run of a program that does not repeat itself may differ in the candidate too; `spread` judges these.
_BY_CHANCE = frozenset({"loss", "gradients", "weights", "numerics"})
_LEAST_S = 0.1  # own: two looks at a record are further apart
_LONGER = 1.5  # a record that does not tell enough is made anew where it may take so many times the seconds that it took
_SEEN_MARGIN, _AT_ONCE, _CONTROLS = 1.1, 2, 4  # baseline runs that differ by chance: with the first four degrees of freedom
_OTHER_SEED, _OTHER_NUDGES = "other-seed", ("nudged-2", "nudged-3")  # of networks with kinks: whether one nudge meets a kink is chance
_NUDGES = {"nudged": "1", "nudged-2": "2", "nudged-3": "3", "nudged-bfloat16": "bfloat16", printed.EVALUATIONS: "evaluations"}
_ENVIRONMENT = {"rerun": {}} | {f"again-{k}": {} for k in range(1, _CONTROLS)} | {n: {"TRAINFLASH_NUDGE": w} for n, w in _NUDGES.items()}
_ENVIRONMENT |= {f"order-{k}": {"TRAINFLASH_VARY": f"order:{k}"} for k in range(1, _CONTROLS + 1)}


def check(
    sandbox: Sandbox,
    baseline: Command,
    candidate: Command,
    directory: Path,
    *,
    tolerance: float = 1e-3,
    updates: int | None = None,
    allowed: frozenset[str] = frozenset(),
    offered: frozenset[str] = frozenset(),
    metric: Metric | None = None,
    restart: Command | None = None,
    resume: bool = False,
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
    `allowed` names the changes in kind that the owner agrees to: what they leave to be judged is judged, with more baseline runs. `offered`
    are those that he may agree to later: where only these stand against the candidate, it is compared as if he had (`Fidelity.agreements`).
    `metric` is the project's own. `restart` is the command that goes on from a checkpoint, where that is another one than the candidate's.
    `baseline_record` is a folder, shared by experiments, that keeps the baseline's runs for the same commit, command and environment; with
    `resume` the candidate's completed runs in `directory` count too. A candidate that crashes, hangs or trains less is a verdict, not an
    exception. Raises `ProgramFailed` when the baseline does not train, `UsageError` when a command cannot be started.
    """
    bounds = bounds or Bounds()
    starter = Starter(sandbox, updates, bounds, on_progress, online, writable, redact, gather=metric is not None)
    place = baseline_record or directory
    trial = _Trial(
        starter,
        baseline,
        candidate,
        directory,
        place,
        reuse.key_of(sandbox, "baseline", baseline) if baseline_record else None,
        reuse.key_of(sandbox, "candidate", candidate),
        tolerance,
        allowed,
        metric,
        restart,
        resume,
        offered,
    )
    found = trial.verdict()
    while more := _presumed(found, trial.allowed, offered):
        trial = replace(trial, allowed=trial.allowed | more, resume=True)
        found = trial.verdict()
    return replace(found, agreements=tuple(sorted(trial.allowed - {"numerics"})))


def _presumed(found: Fidelity, agreed: frozenset[str], offered: frozenset[str]) -> frozenset[str]:
    """The agreements that are still to be had, where nothing else stands against the candidate."""
    names = frozenset(found.changed) - {"numerics"} - agreed if found.verdict == "changed" else frozenset()
    return names if names <= offered else frozenset()


@dataclass(frozen=True)
class _Sides:
    """Both runs of a trial; `trouble` says how the candidate failed to get as far as the baseline."""

    baseline: Run
    candidate: Run
    refused_early: bool
    trouble: Check | None = None
    first_s: float | None = None  # until the baseline's first update, both starting at once; None: it was recorded earlier


@dataclass(frozen=True)
class _Trial:
    starter: Starter
    baseline: Command
    candidate: Command
    directory: Path
    place: Path  # of the baseline's runs
    key: str | None
    candidate_key: str | None
    tolerance: float
    allowed: frozenset[str]
    metric: Metric | None
    restart: Command | None
    resume: bool
    offered: frozenset[str] = frozenset()
    least: int = 0  # updates that have to be compared, as far as the time suffices

    def verdict(self) -> Fidelity:
        try:
            kept, sides = self._sides()
        except OutOfTime as over:
            return self._unfinished(judgement.nothing(self.tolerance), over)
        found = self._compare(sides)
        if sides.trouble is not None:
            return _troubled(found, sides.trouble)
        if not found.updates:
            return found
        try:
            self.starter.afford_starts(sides.first_s)
            found, later = self._looked_into(found, sides, kept)
        except OutOfTime as over:
            return self._unfinished(found, over)
        if not later:
            return found
        further = replace(self, least=_with_margin(later), resume=True).verdict()
        return found if further.verdict == "inconclusive" else further

    @staticmethod
    def _unfinished(found: Fidelity, over: OutOfTime) -> Fidelity:
        """`found`, left open because the time does not suffice."""
        return replace(found, verdict="inconclusive", changed=(), reasons=(str(over),))

    def _sides(self) -> tuple[dict[str, Run], _Sides]:
        kept = {name: run for name, run in reuse.load(self.place, self.key, self.starter.updates).items() if self._enough_kept(run)}
        kept = kept if "baseline" in kept else {}
        return kept, self._beside(kept["baseline"]) if kept else self._together()

    def _looked_into(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> tuple[Fidelity, int]:
        """What further runs say of a first comparison; and after how many updates changed lines ran that had not in it, 0: none did."""
        found = self._evaluated(found, sides, kept)
        found = self._beyond_noise(found, sides, kept) if found.verdict != "same" else found
        found = self._way_back(found, sides, kept)
        found = self._written(found, sides, kept)
        found = self._printed(found, sides, kept) if found.verdict == "same" else found
        if found.verdict in {"same", "close"} and not any(stream.seeded in {True, None} for stream in sides.baseline.record.trained):
            found = self._under_another_seed(found, sides, kept)
        return self._resumed(found, sides)

    def _way_back(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> Fidelity:
        """The same first loss with another gradient, where only rounding is said to have changed: is it so at another point as well?

        Rounding that meets a kink turns a gradient once; where a part of the loss lost its gradient it is another one wherever one looks.
        """
        if found.verdict != "close" or set(found.changed) - {"numerics"}:
            return found
        far = judgement.another_gradient(sides.baseline.record, sides.candidate.record)
        known = self._runs(("nudged",), sides, kept).get("nudged") if far is not None else None
        if known is None:
            return found
        new = self.starter.start("nudged", "candidate", self.candidate, self.directory, environment=_ENVIRONMENT["nudged"])
        try:
            self.starter.reach([new], 1, self._deadline(sides.baseline.seconds))
            again = judgement.another_gradient(known.record, new.record)
        finally:
            new.end()
        if again is None:
            return found
        evidence = (
            f"the first loss is the same to the bit and has another gradient, relative distance {far:.2g}; so it is where the weights are "
            f"moved by a unit in the last place, {again:.2g}"
        )
        check = Check("first gradient", False, evidence)
        reasons = (f"{check.name}: {evidence}",)
        return replace(found, verdict="changed", changed=("gradients",), checks=(*found.checks, check), reasons=reasons)

    def _evaluated(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> Fidelity:
        """Where evaluations alone are made in another way: what the program makes of them decides."""
        old, new = sides.baseline, sides.candidate
        if not judgement.evaluates_otherwise(old.record, new.record, found):
            return found
        control = self._runs((printed.EVALUATIONS,), sides, kept).get(printed.EVALUATIONS)
        if control is None or not judgement.bitwise(old.record, control.record):
            return found
        return printed.vouched(found, old, new, control, whole=old.record.whole and new.record.whole)

    def _printed(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> Fidelity:
        whole = sides.baseline.record.whole and sides.candidate.record.whole
        return printed.judge(
            found, sides.baseline, sides.candidate, whole=whole, run=lambda name: self._runs((name,), sides, kept).get(name)
        )

    def _written(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> Fidelity:
        """Where the training is one that may be accepted, and steps are steps on both sides."""
        changed = set(found.changed)
        if found.verdict == "inconclusive" or not changed <= self.allowed | {"numerics"} or changed & _OTHER_STEPS:
            return found
        return written.judge(found, sides.baseline, sides.candidate, run=lambda name: self._runs((name,), sides, kept).get(name))

    def _under_another_seed(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> Fidelity:
        """The program sets no seed, so ours is one of many: what it does under a single one may not be what it does."""
        known = self._runs((_OTHER_SEED,), sides, kept).get(_OTHER_SEED)
        new = self.starter.start(_OTHER_SEED, "candidate", self.candidate, self.directory, seed=SEED + 1)
        try:
            self.starter.reach(
                [new], None if sides.baseline.record.whole else sides.baseline.record.updates, self._deadline(sides.baseline.seconds)
            )
            record = new.record
        finally:
            new.end()
        if known is None or new.failed or record.updates < 0.9 * min(known.record.updates, sides.candidate.record.updates):
            return replace(found, not_judged=(*found.not_judged, "another seed"))
        second = judgement.compare(known.record, record, tolerance=self.tolerance, agreed=self.allowed, chance_known=False)
        changed = set(second.changed) if found.verdict == "same" else judgement.hard_changes(known.record, record, self.allowed)
        changed -= {"numerics"} | (printed.EXPLAINED if printed.is_vouched(found) else set())
        evidence = f"{second.updates} updates under a second seed: {second.verdict if not changed else '; '.join(second.reasons[:2])}"
        checks = (*found.checks, Check("another seed", not changed, evidence))
        if not changed:
            return replace(found, checks=checks)
        failing = tuple(check for check in second.checks if check.ok is False)
        return replace(found, verdict="changed", changed=tuple(sorted(changed)), checks=(*checks, *failing), reasons=second.reasons)

    def _compare(self, sides: _Sides, known: dict[str, Record] | None = None, controls: tuple[Record, ...] | None = None) -> Fidelity:
        known = known or {}
        return judgement.compare(
            sides.baseline.record,
            sides.candidate.record,
            tolerance=self.tolerance,
            rerun=known.get("rerun"),
            nudged=known.get("nudged"),
            nudges=[known[name] for name in _OTHER_NUDGES if name in known],
            controls=controls,
            agreed=self.allowed,
            metric=self.metric.compare(sides.baseline, sides.candidate) if self.metric else None,
        )

    def _enough_kept(self, run: Run) -> bool:
        if self.metric is not None and run.outputs is None:
            return False
        if not run.record.whole and run.record.updates < self.least:
            return False
        record, bounds = run.record, self.starter.bounds
        if record.whole or self.starter.updates is not None or run.seconds * _LONGER > bounds.most_s:
            return True
        return _all_seen(record, record.updates)

    def _beyond_noise(self, found: Fidelity, sides: _Sides, kept: dict[str, Run]) -> Fidelity:
        """Compared again beside the baseline's own noise; and as whole runs, where single updates cannot be compared."""
        nudge = "nudged-bfloat16" if "precision" in found.changed else "nudged"
        beyond = (_NEVER_ROUNDING - self.allowed) & set(found.changed)
        if beyond <= _PORTIONED and judgement.begins_alike(sides.baseline.record, sides.candidate.record):
            beyond = set()
        runs = self._runs(("rerun",) if beyond else ("rerun", nudge), sides, kept)
        known = {name.removesuffix("-bfloat16"): run.record for name, run in runs.items()}
        found = self._compare(sides, known)
        if "rerun" in known and judgement.ends_by_time(sides.baseline.record, known["rerun"]):
            return found
        unsteady = "rerun" in known and judgement.unsteady(sides.baseline.record, known["rerun"], self.tolerance)
        if not unsteady and judgement.only_drifts(found, sides.baseline.record, sides.candidate.record, known.get("nudged"), self.allowed):
            return self._compare(sides, known | {name: run.record for name, run in self._runs(_OTHER_NUDGES, sides, kept).items()})
        changed = set(found.changed) - {"numerics"}
        if unsteady and changed <= self.allowed | _BY_CHANCE:
            names = [name for name in _ENVIRONMENT if name.startswith("again-")]
        elif "order" in changed and changed <= self.allowed:
            names = [name for name in _ENVIRONMENT if name.startswith("order-")]
        else:
            return found
        controls = self._runs(names, sides, kept)
        return self._compare(sides, known, (*([known["rerun"]] if unsteady else []), *(run.record for run in controls.values())))

    def _resumed(self, found: Fidelity, sides: _Sides) -> tuple[Fidelity, int]:
        if found.verdict == "inconclusive" or not set(found.changed) <= self.allowed | {"numerics"}:
            return found, 0
        commands = restarting.Commands(self.baseline, self.candidate, self.restart or self.baseline, self.restart or self.candidate)
        shelf = restarting.Shelf(self.place, self.key, self.starter.updates)
        found = restarting.judge(self.starter, commands, self.directory, shelf, sides.baseline.record, found, self.tolerance)
        own = unrun.Shelf(self.directory, self.candidate_key, self.resume)
        deadline = min(self._deadline(sides.candidate.seconds), self.starter.left_s)
        reach = self._reach(found, sides)
        return unrun.judge(found, self.allowed, self.starter, self.candidate, own, sides.candidate, deadline, reach)

    def _reach(self, found: Fidelity, sides: _Sides) -> int:
        """Updates that both sides could be compared over in the time that is left, were they recorded anew; 0: once is enough.

        One pass is the search for what would be seen by then, and where the sides were not the same the baseline trains twice again.
        """
        if self.least or self.starter.updates is not None or math.isinf(self.starter.left_s):
            return 0
        passes = 2 if found.verdict == "same" else 4
        took_s, begun_s = max(sides.baseline.seconds, sides.candidate.seconds), sides.first_s or 0.0
        each_s = max(took_s - begun_s, _LEAST_S) / max(1, sides.baseline.record.updates - 1)
        return int(max(0.0, self.starter.left_s / passes - begun_s) / each_s / _SEEN_MARGIN)

    def _together(self) -> _Sides:
        """Both at once; where one fails, which two programs that want the same port or device may, one after the other."""
        if self._apart():
            return self._beside(self._alone())
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
            trouble = None if refused else _trouble(old.record, new)
            self._keep_candidate(new, refused or trouble is not None)
            return _Sides(self._run_of(old), self._run_of(new), refused, trouble, old.first_s)
        finally:
            for attempt in (old, new):
                if attempt is not None:
                    attempt.end()

    def _apart(self) -> bool:
        """Ranks that a daemon starts often meet at a port made from the job's number: two such jobs at once wait for each other's ranks."""
        return bool(launch.daemons.of(self.starter.sandbox, "baseline", self.baseline))

    def _alone(self) -> Run:
        """The baseline's run, with nothing beside it."""
        old = self.starter.start("baseline", "baseline", self.baseline, self.place)
        try:
            self._lead(old)
            self._must_train(old)
            self._keep(old, "baseline", whole_question=True)
        finally:
            old.end()
        return self._run_of(old)

    def _beside(self, old: Run) -> _Sides:
        """The candidate alone, against a baseline that was recorded earlier."""
        if self.resume:
            known = reuse.load(self.directory, self.candidate_key, self.starter.updates, first="candidate").get("candidate")
            if known is not None and self._enough_kept(known) and (known.record.whole or known.record.updates >= old.record.updates):
                return _Sides(old, known, False)
        new = self._run_candidate(old.record, old.seconds)
        if new.failed:
            new = self._run_candidate(old.record, old.seconds)
        trouble = _trouble(old.record, new)
        self._keep_candidate(new, trouble is not None)
        return _Sides(old, self._run_of(new), False, trouble)

    def _run_of(self, attempt: Attempt) -> Run:
        record, seconds = attempt.record, attempt.seconds
        attempt.end()
        return Run(record, seconds, attempt.log, attempt.outputs)

    def _keep_candidate(self, attempt: Attempt, unfit: bool) -> None:
        if not unfit and self.candidate_key is not None:
            run = Kept(attempt.run_dir.name, attempt.record.whole, attempt.seconds)
            reuse.keep(self.directory, self.candidate_key, self.starter.updates, {"candidate": run}, first="candidate")

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
            self.starter.expire((old,))
            if self._enough(old) and not self._epoch_wanted(old, new):
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
            self.starter.expire((old,))
            if self._enough(old):
                old.stop()
            pause()

    def _epoch_wanted(self, old: Attempt, new: Attempt) -> bool:
        """Whether only what comes behind an epoch's end would tell, and there is time to wait for it."""
        bounds = self.starter.bounds
        if self.starter.updates is not None or old.seconds > bounds.longest_s or new.failed or not old.record.updates:
            return False
        return not old.due() or judgement.lacks_an_epoch(old.record, new.record, self.allowed)

    def _enough(self, old: Attempt) -> bool:
        bounds, record = self.starter.bounds, old.record
        if self.starter.updates is not None:
            return record.updates >= self.starter.updates
        if not record.updates:
            return old.seconds > bounds.first_update_s
        if record.updates < self.least:
            return old.seconds > self.starter.left_s
        if old.seconds > bounds.most_s:
            return True
        if old.seconds < bounds.whole_s or not old.due():
            return False
        return _all_seen(record, int(record.updates / _SEEN_MARGIN))

    def _hopeless(self, old: Attempt, new: Attempt) -> bool:
        found = judgement.hard_changes(replace(old.record, whole=False), replace(new.record, whole=False), self.allowed)
        if not found & _HOPELESS - self.allowed - self.offered:
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
            what = "never completed an optimizer update"
            mend = "fidelity needs an optimizer, or parameters changed in place; trainflash diagnose finds a function that gives new ones"
            mend = f"{mend}; where the first update takes longer than {old.seconds:.0f} s, give more --budget" if old.cut else mend
        raise ProgramFailed(f"the baseline {what}: {command}", mend, returncode=result.returncode, output=result.output_tail)

    def _runs(self, names: Sequence[str], sides: _Sides, kept: dict[str, Run]) -> dict[str, Run]:
        """Further runs of the baseline by name, as far as the trial went; a run that fails tells nothing."""
        found = {name: kept[name] for name in names if name in kept}
        wanted = [name for name in names if name not in found]
        target = None if sides.baseline.record.whole else min(sides.baseline.record.updates, sides.candidate.record.updates)
        count = 1 if self._apart() else _AT_ONCE
        once_s = max(sides.baseline.seconds, sides.candidate.seconds if not sides.refused_early else 0.0)
        while wanted:
            now, wanted = wanted[:count], wanted[count:]
            self.starter.afford(f"training the baseline again ({', '.join(now)})", once_s)
            attempts: list[Attempt] = []
            try:
                for name in now:
                    seed = SEED + 1 if name == _OTHER_SEED else SEED
                    attempts.append(
                        self.starter.start(name, "baseline", self.baseline, self.place, environment=_ENVIRONMENT.get(name), seed=seed)
                    )
                self.starter.reach(attempts, target, self._deadline(sides.baseline.seconds))
                for attempt in attempts:
                    if not attempt.failed:
                        self._keep(attempt, attempt.name, whole_question=not sides.refused_early)
                        found[attempt.name] = kept[attempt.name] = self._run_of(attempt)
            finally:
                for attempt in attempts:
                    attempt.end()
        return found

    def _keep(self, attempt: Attempt, name: str, *, whole_question: bool) -> None:
        if whole_question:
            run = Kept(attempt.run_dir.name, attempt.record.whole, attempt.seconds)
            reuse.keep(self.place, self.key, self.starter.updates, {name: run})


def _with_margin(updates: int) -> int:
    """So many that what happens after `updates` of them is seen to its end."""
    return max(updates + 2, int(_SEEN_MARGIN * updates))


def _all_seen(record: Record, updates: int) -> bool:
    """Whether the first `updates` updates of each process hold one occasion of each kind."""
    return all(len(seen_occasions(stream, updates, False)) == len(judgement.OCCASIONS) for stream in record.trained)


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
