"""Is this experiment faster, and does it still train the same? Fidelity first: a candidate that fails it is never timed.

One that fails it for want of an agreement alone which the owner can give by name is timed, too, unless that is not wanted (`Demands.ask`):
he is asked with the figures on the table, and the check and the starts that are kept answer when he agrees.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import statistics
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import bench, fidelity, redact, stats, telemetry, verdict
from trainflash import sandbox as sandboxes
from trainflash.errors import UsageError
from trainflash.schema import (
    AGREEABLE,
    Command,
    Experiment,
    Fidelity,
    LogEntry,
    Runs,
    SpeedVerdict,
    Start,
    Verdict,
    as_changed,
    read_document,
    to_plain,
    write_document,
)
from trainflash.workflow import checked, diagnosing, owners_run, vault
from trainflash.workflow.session import Session, now_utc, some_of

LEAST_BUDGET_S = 20.0  # below this not even one start of a small program can be measured
PAIR = "pair"  # beside what a comparison found: the name of the folder that its starts are in


@dataclass(frozen=True)
class Demands:
    """What a verdict is held to. `allowed` names the changes the owner agreed to; `budget_s` bounds check and timing together, but for
    whole trainings (`convergence`), of which at least half belongs to the timing.

    `ask`: what needs an agreement that the owner can give yet is checked as if he had, and timed; without it, it costs a check alone.
    `resume`: go on only if what was measured before was measured under the same conditions; without it such starts count too, and
    others are set aside. `take_up`: a check that was finished before a kill counts, as it does with `resume`, whatever it did not see.
    """

    tolerance: float = 1e-3
    allowed: frozenset[str] = frozenset()
    budget_s: float = 600.0
    min_gain: float = 1.02
    resume: bool = False
    take_up: bool = False
    ask: bool = True
    online: bool = False
    writable: tuple[str, ...] = ()
    metric: str | None = None  # the project's own, as the owner wrote it
    metric_tolerance: float = 1e-3
    restart: tuple[str, ...] = ()  # the command that goes on from a checkpoint; (): the same one does
    convergence: int = 0  # seeds under which both sides are trained whole; 0: not asked for


def require_budget(demands: Demands, session: Session | None = None, command: Command | None = None) -> None:
    """Raises `UsageError` for a budget in which not even one start of each version fits, as far as that is known beforehand."""
    least, why = LEAST_BUDGET_S, ""
    if session is not None and command is not None:
        shown = redact.argv(command.argv)
        starts = (start for path in (session.directory / "pairs").glob("*/runs.json") for start in _starts_of(path, shown))
        took = min((start.spent_s for start in starts if start.y is not None), default=0.0)
        least, why = max(least, took), f": one start of both took {took:.0f} s before" if took > least else ""
    if demands.budget_s < least:
        raise UsageError(f"a budget of {demands.budget_s:.0f} s is too small for a verdict{why}", f"give at least {math.ceil(least)}s")


def _starts_of(path: Path, argv: tuple[str, ...]) -> tuple[Start, ...]:
    runs = read_document(Runs, path)
    return runs.starts if runs.command.argv == argv else ()


def cost(demands: Demands, session: Session | None = None) -> str:
    """What a verdict will cost, in one sentence to be said beforehand; with what a start took in the last comparison of this sandbox."""
    paths = (session.directory / "pairs").glob("*/runs.json") if session else ()
    newest = max(paths, key=lambda path: path.stat().st_mtime, default=None)
    starts = read_document(Runs, newest).starts if newest else ()
    spent = [start.spent_s for start in starts if start.y is not None]
    sentence = bench.cost(demands.budget_s, start_s=sum(spent) / len(spent) if spent else None)
    return f"{sentence}; before that both versions train whole under {demands.convergence} seeds" if demands.convergence else sentence


def compare(
    session: Session,
    baseline_commit: str,
    candidate_commit: str,
    baseline: Command,
    candidate: Command,
    directory: Path,
    demands: Demands,
    edited: Collection[str] | None = None,
) -> tuple[Verdict, Runs | None]:
    """Compare two commits of the sandbox; the files of the comparison go to `directory`. Raises `ProgramFailed` if the baseline fails,
    `UsageError` where a secret of a command is gone. `edited`: files of the project that both sides share and that are others now; None:
    all that were edited since the sandbox was made."""
    for command in (baseline, candidate):
        vault.require(command)
    began = time.monotonic()
    session = session.as_run_by(baseline)
    before = session.original_changes()
    require_budget(demands)
    directory.mkdir(parents=True, exist_ok=True)
    session.take("baseline", baseline_commit)
    session.take("candidate", candidate_commit)
    taken = _contents(session)
    timing = pair_directory(session, baseline, candidate, taken)
    (directory / PAIR).write_text(timing.name, encoding="ascii")
    kept = baseline_records(session, baseline_commit, baseline)
    asked = checked.question(session, candidate, demands)
    bounds = fidelity.Bounds.within(demands.budget_s, stats.LEAST_STARTS)
    offered = AGREEABLE if demands.ask else frozenset()
    same = checked.before(
        timing, asked, directory,
        allowed=demands.allowed, offered=offered, most_s=bounds.most_s, incomplete=demands.resume or demands.take_up,
    )  # fmt: skip
    if same is None:
        same, beside_s = _fidelity(session, baseline, candidate, directory, kept, demands, offered, bounds)
        began += beside_s
        checked.keep(timing, asked, directory, same, bounds.most_s)
    speed: SpeedVerdict | None = None
    runs: Runs | None = None
    presumed = verdict.lacking(same, demands.allowed) if demands.ask else frozenset()
    if verdict.may_be_timed(same, allowed=demands.allowed | presumed):
        before_now = bench.asked_before(timing)
        counted, evaluated = (ask(session.sandbox, baseline, kept) for ask in (fidelity.whole_steps, fidelity.evaluated_every))
        run = owners_run.know(diagnosing.latest(session, baseline), demands.budget_s, before_now, counted, evaluated)
        work, unit = owners_run.work(directory / "fidelity", kept, same, before_now)
        if work is None:
            speed = SpeedVerdict("inconclusive", None, unit)
        else:
            question = bench.Question(
                "..".join(taken), run.first_epoch, work, unit, demands.min_gain, far=True, run_steps=run.whole, cycle=run.cycle
            )
            runs, speed = bench.compare(
                session.sandbox,
                baseline,
                candidate,
                timing,
                budget_s=max(LEAST_BUDGET_S, demands.budget_s - (time.monotonic() - began)),
                question=question,
                on_progress=session.on_progress,
                resume=demands.resume,
                online=demands.online,
                writable=demands.writable,
                redact=redact.text,
                shown=replace(baseline, argv=redact.argv(baseline.argv), env=redact.environment(baseline.env)),
            )
            if run.said:
                speed = replace(speed, reason=f"{speed.reason}; {run.said}")
            seen = bench.course_of(timing, runs.starts)
            speed = bench.with_costs(speed, runs.starts, run.costs(), work_ratio=work[1] / work[0], course=seen)
            same = fidelity.work.applied(same, fidelity.work.check(directory / "fidelity", kept, timed_runs(timing), demands.tolerance))
            write_document(directory / "fidelity.json", same)
    judged = verdict.judge(
        speed, same, allowed=demands.allowed, protection=session.sandbox.protection, spent_s=round(time.monotonic() - began, 1)
    )
    judged = _undisturbed(session, judged, taken, timing, runs)
    written = sorted(session.original_changes() - before)
    if written:
        reason = (
            f"while it ran the project itself changed: {', '.join(written[:3])}; {session.sandbox.protection} protection cannot say by whom"
        )
        judged = replace(judged, verdict="reject", needs=(), reasons=(reason, *judged.reasons))
    drift = sandboxes.drifted(session.sandbox) if edited is None else tuple(edited)
    if drift:
        reason = f"the project was edited since the sandbox was made ({some_of(drift)}): this verdict is about the state before"
        judged = replace(judged, reasons=(*judged.reasons, reason))
    write_document(directory / "verdict.json", judged)
    return judged, runs


def timed_runs(timing: Path) -> list[tuple[Path, Path]]:
    """Run folders of all timed starts that both sides made."""
    found = ((path, path.with_name(path.name.replace("-baseline", "-candidate"))) for path in sorted(timing.glob("start-*-baseline")))
    return [both for both in found if both[1].is_dir()]


def pair_directory(session: Session, baseline: Command, candidate: Command, contents: tuple[str, str]) -> Path:
    """Where the starts of two programs are kept: the same for the same contents and commands, in whatever experiment they are met again."""
    plain = [list(contents), to_plain(baseline), to_plain(candidate)]
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    return session.directory / "pairs" / digest[:16]


def _contents(session: Session) -> tuple[str, str]:
    """What lies in both checkouts."""
    return sandboxes.content(session.sandbox, "baseline"), sandboxes.content(session.sandbox, "candidate")


def _undisturbed(session: Session, judged: Verdict, taken: tuple[str, str], timing: Path, runs: Runs | None) -> Verdict:
    """`judged`, unless a checkout was edited while it was measured: then it says so, and these starts will not count."""
    edited = [name for name, before, now in zip(("baseline/", "worktree/"), taken, _contents(session), strict=True) if before != now]
    if not edited:
        return judged
    if runs is not None:
        bench.forget_after(timing, runs.kept_from_before)
    paths = session.dirty() if "worktree/" in edited else ()
    what = f"{' and '.join(edited)} {'were' if len(edited) > 1 else 'was'} edited while it was measured"
    return replace(judged, verdict="inconclusive", reasons=(f"{what}{': ' if paths else ''}{', '.join(paths[:3])}", *judged.reasons))


def whole_steps(session: Session, command: Command) -> int | None:
    """All steps of the program that experiments are compared with now; None where no check of its training came to its end."""
    kept = baseline_records(session, session.tip(), command)
    return fidelity.whole_steps(session.sandbox, command, kept) if kept.is_dir() else None  # to ask costs a start of the interpreter


def baseline_records(session: Session, commit: str, command: Command) -> Path:
    """Where the recorded runs of a commit under a command are kept, for all candidates."""
    digest = hashlib.sha256(json.dumps(to_plain(command), sort_keys=True).encode()).hexdigest()
    return session.directory / "baselines" / f"{commit[:12]}-{digest[:8]}"


def _fidelity(
    session: Session,
    baseline: Command,
    candidate: Command,
    directory: Path,
    kept: Path,
    demands: Demands,
    offered: frozenset[str],
    bounds: fidelity.Bounds,
) -> tuple[Fidelity, float]:
    """What a check of the training finds, and the seconds of it that belong to no budget: those of whole trainings."""
    place, box, beside_s = directory / "fidelity", session.sandbox, 0.0
    metric = None
    if demands.metric is not None:
        metric = fidelity.metric.parse(
            demands.metric, demands.metric_tolerance, folder=str(Path(box.baseline, box.prefix)), prefix=box.prefix,
            interpreter=fidelity.interpreter(box, baseline),
        )  # fmt: skip
    found = fidelity.check(
        box,
        baseline,
        candidate,
        place,
        tolerance=demands.tolerance,
        allowed=demands.allowed,
        offered=offered,
        metric=metric,
        restart=replace(baseline, argv=demands.restart) if demands.restart else None,
        resume=True,
        on_progress=session.on_progress,
        baseline_record=kept,
        bounds=bounds,
        online=demands.online,
        writable=demands.writable,
        redact=redact.text,
    )
    if demands.convergence and verdict.may_be_timed(found, allowed=demands.allowed | (verdict.lacking(found, demands.allowed) & offered)):
        began = time.monotonic()
        plan = fidelity.convergence.Plan(seeds=demands.convergence, metric=metric)
        ends = fidelity.convergence.check(
            box, baseline, candidate, place / "convergence", plan, baseline_record=kept / "convergence",
            on_progress=session.on_progress, online=demands.online, writable=demands.writable, redact=redact.text,
        )  # fmt: skip
        found, beside_s = fidelity.convergence.applied(found, ends), time.monotonic() - began
    write_document(directory / "fidelity.json", found)
    return found, beside_s


def verify_experiment(session: Session, n: int, demands: Demands, command: Command | None = None) -> Experiment:
    """Judge experiment `n` against the commit it was built on, save and log the verdict; with its own command, or from now on `command`.

    Raises `UsageError` when another experiment was accepted in its place: two cannot stand on the same commit.
    """
    experiment = with_command(session.experiment(n), command)
    baseline, candidate = commands_of(session, experiment)
    for other in session.accepted():
        if other.parent_commit == experiment.parent_commit and other.n != n:
            raise UsageError(
                f"experiment {other.n} was accepted where experiment {n} was made", "try that change again, on top of what was accepted"
            )
    place = session.experiment_dir(n)
    if experiment.decision == "accepted":
        demands = _with_agreements(demands, (experiment,))
    try:
        judged, runs = compare(session, experiment.parent_commit, experiment.commit, baseline, candidate, place, demands)
        return settle(session, experiment, judged, runs)
    finally:
        session.rest()


def with_command(experiment: Experiment, command: Command | None) -> Experiment:
    """The experiment under another command than its own; None: its own."""
    if command is None:
        return experiment
    return replace(experiment, command=replace(command, env={**experiment.command.env, **command.env}))


def commands_of(session: Session, experiment: Experiment) -> tuple[Command, Command]:
    """What runs in the state that an experiment was built on, and in its own."""
    baseline = as_changed(experiment.command, _below(session, experiment))
    return baseline, as_changed(baseline, (experiment,))


def _with_agreements(demands: Demands, accepted: Collection[Experiment]) -> Demands:
    """What the owner agreed to when these were accepted, he has agreed to when they are judged again, or together."""
    return replace(demands, allowed=demands.allowed.union(*(verdict.agreed_to(one.verdict) for one in accepted)))


def _below(session: Session, experiment: Experiment) -> list[Experiment]:
    """The accepted experiments that this one stands on, the lowest first."""
    by_commit = {other.commit: other for other in session.accepted()}
    found: list[Experiment] = []
    commit = experiment.parent_commit
    while commit in by_commit:
        found.insert(0, by_commit[commit])
        commit = found[0].parent_commit
    return found


def settle(session: Session, experiment: Experiment, judged: Verdict, runs: Runs | None) -> Experiment:
    """Save the verdict with the experiment, and one entry in the log."""
    words = {"accept": "accepted", "reject": "rejected", "inconclusive": "inconclusive", "needs_agreement": "needs_agreement"}
    decision = words[judged.verdict]
    settled = session.save(replace(experiment, verdict=judged, decision=decision))
    session.log(entry_of(session, settled, runs))
    return settled


def verify_combination(session: Session, command: Command, demands: Demands) -> Verdict | None:
    """Judge all accepted experiments together against the owner's state; None when nothing was accepted."""
    accepted = session.accepted()
    known = session.combination(command)
    if known is not None and known.verdict == "reject" and len(accepted) > 1:  # killed before that was drawn from it
        _settle_combination(session, accepted, command, known, None)
    if not accepted or (known is not None and known.verdict not in {"inconclusive", "needs_agreement"}):
        return known
    place, demands = session.combination_path(command).with_suffix(""), _with_agreements(demands, accepted)
    judged, runs = compare(session, session.sandbox.base_ref, session.tip(), command, as_changed(command, accepted), place, demands)
    _settle_combination(session, accepted, command, judged, runs)
    return judged


def _settle_combination(session: Session, accepted: Collection[Experiment], command: Command, judged: Verdict, runs: Runs | None) -> None:
    write_document(session.combination_path(command), judged)
    if judged.verdict == "reject":  # only the first was proven against the owner's state: what came after it does not stay
        for experiment in list(accepted)[1:]:
            session.save(replace(experiment, decision="rejected"))
    entry = LogEntry(kind="combination", at_utc=now_utc(), what=_together(accepted), command=shlex.join(redact.argv(command.argv)))
    session.log(replace(_measured(entry, judged, runs), decision=judged.verdict))


def verify_accepted(session: Session, command: Command, demands: Demands) -> Verdict:
    """Judge all accepted experiments together against the owner's state, measured anew. Raises `UsageError` where none was accepted."""
    accepted = session.accepted()
    if not accepted:
        raise UsageError("nothing was accepted in this sandbox yet", "name --experiment N, or --baseline and --candidate")
    if len(accepted) == 1:  # its own verdict is that of the combination
        judged = verify_experiment(session, accepted[0].n, demands, command).verdict
        assert judged is not None
        return judged
    directory, demands = session.combination_path(command).with_suffix(""), _with_agreements(demands, accepted)
    try:
        commits = session.sandbox.base_ref, session.tip()
        judged, runs = compare(session, *commits, command, as_changed(command, accepted), directory, demands)
        _settle_combination(session, accepted, command, judged, runs)
        return judged
    finally:
        session.rest()


def _together(accepted: Collection[Experiment]) -> str:
    return "accepted together: " + ", ".join(f"{experiment.n} ({experiment.knob})" for experiment in accepted)


def complete_log(session: Session) -> None:
    """Add what a kill left out: the log's entry of an experiment that was settled in this sandbox."""
    since = session.sandbox.created_utc
    logged = {entry.experiment for entry in session.log_entries() if entry.kind == "experiment" and entry.at_utc >= since}
    for experiment in session.experiments():
        if experiment.decision != "pending" and experiment.created_utc >= since and experiment.n not in logged:
            session.log(replace(entry_of(session, experiment, None), at_utc=""))


def entry_of(session: Session, experiment: Experiment, runs: Runs | None) -> LogEntry:
    """The log's entry of one settled experiment; `before` holds the phases of the diagnosis that it rests on."""
    known = diagnosing.latest(session, experiment.command)
    entry = LogEntry(
        kind="experiment",
        at_utc=now_utc(),
        what=f"{experiment.knob} = {experiment.value}" if experiment.value else experiment.knob,
        why=experiment.why,
        experiment=experiment.n,
        parent=experiment.parent,
        knob=experiment.knob,
        value=experiment.value,
        finding=experiment.finding,
        diff_digest=experiment.diff_digest,
        command=shlex.join(redact.argv(experiment.command.argv)),
        decision=experiment.decision,
        environment=telemetry.machine() | (known[1].versions if known else {}),
        before=known[0].phases if known else {},
    )
    return _measured(entry, experiment.verdict, runs) if experiment.verdict else entry


def _measured(entry: LogEntry, judged: Verdict, runs: Runs | None) -> LogEntry:
    def median(name: str) -> float | None:
        values = [value for start in runs.starts if start.y is not None and (value := getattr(start, name)) is not None] if runs else []
        return statistics.median(values) if values else None

    return replace(
        entry,
        environment={**entry.environment, **(runs.machine if runs else {})},
        before_step_ms=median("baseline_step_ms"),
        after_step_ms=median("candidate_step_ms"),
        before_p95_ms=median("baseline_p95_ms"),
        after_p95_ms=median("candidate_p95_ms"),
        before_p99_ms=median("baseline_p99_ms"),
        after_p99_ms=median("candidate_p99_ms"),
        speedup=judged.speedup,
        fidelity=judged.fidelity.verdict if judged.fidelity else "",
        mean_abs_loss_delta=judged.fidelity.mean_abs_loss_delta if judged.fidelity else None,
        verdict=judged.verdict,
        reasons=judged.reasons,
    )
