"""Is this experiment faster, and does it still train the same? Fidelity first: a candidate that fails it is never timed."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import bench, fidelity, redact, verdict
from trainflash.errors import UsageError
from trainflash.schema import Command, Experiment, Fidelity, LogEntry, Runs, SpeedVerdict, Verdict, write_document
from trainflash.workflow.session import Session, now_utc

LEAST_BUDGET_S = 20.0  # below this not even one start of a small program can be measured


@dataclass(frozen=True)
class Demands:
    """What a verdict is held to. `allowed` names the changes the owner agreed to; `budget_s` bounds the timed part."""

    tolerance: float = 1e-3
    allowed: frozenset[str] = frozenset()
    budget_s: float = 600.0
    min_gain: float = 1.02
    resume: bool = False
    online: bool = False
    writable: tuple[str, ...] = ()


def compare(
    session: Session,
    baseline_commit: str,
    candidate_commit: str,
    baseline: Command,
    candidate: Command,
    directory: Path,
    demands: Demands,
) -> tuple[Verdict, Runs | None]:
    """Compare two commits of the sandbox; the files of the comparison go to `directory`. Raises `ProgramFailed` if the baseline fails."""
    began = time.monotonic()
    before = session.original_changes()
    if demands.budget_s < LEAST_BUDGET_S:
        raise UsageError(f"a budget of {demands.budget_s:.0f} s is too small for a verdict", f"give at least {LEAST_BUDGET_S:.0f}s")
    directory.mkdir(parents=True, exist_ok=True)
    session.take("baseline", baseline_commit)
    session.take("candidate", candidate_commit)
    kept = session.directory / "baselines" / baseline_commit[:12]
    same = _fidelity(session, baseline, candidate, directory, kept, demands)
    speed: SpeedVerdict | None = None
    runs: Runs | None = None
    if verdict.may_be_timed(same, allowed=demands.allowed):
        runs, speed = bench.compare(
            session.sandbox,
            baseline,
            candidate,
            directory / "bench",
            budget_s=max(LEAST_BUDGET_S, demands.budget_s - (time.monotonic() - began)),
            min_gain=demands.min_gain,
            on_progress=session.on_progress,
            resume=demands.resume,
            identity=f"{baseline_commit}..{candidate_commit}",
            online=demands.online,
            writable=demands.writable,
            redact=redact.text,
        )
    judged = verdict.judge(
        speed, same, allowed=demands.allowed, protection=session.sandbox.protection, spent_s=round(time.monotonic() - began, 1)
    )
    written = sorted(session.original_changes() - before)
    if written:
        reason = (
            f"while it ran the project itself changed: {', '.join(written[:3])}; {session.sandbox.protection} protection cannot say by whom"
        )
        judged = replace(judged, verdict="reject", reasons=(reason, *judged.reasons))
    write_document(directory / "verdict.json", judged)
    return judged, runs


def _fidelity(session: Session, baseline: Command, candidate: Command, directory: Path, kept: Path, demands: Demands) -> Fidelity:
    place = directory / "fidelity"
    if place.exists() and not demands.resume:
        shutil.rmtree(place)
    found = fidelity.check(
        session.sandbox,
        baseline,
        candidate,
        place,
        tolerance=demands.tolerance,
        on_progress=session.on_progress,
        baseline_record=kept,
        bounds=fidelity.Bounds(whole_s=min(60.0, 0.1 * demands.budget_s), most_s=min(240.0, 0.25 * demands.budget_s)),
        online=demands.online,
        writable=demands.writable,
        redact=redact.text,
    )
    write_document(directory / "fidelity.json", found)
    return found


def verify_experiment(session: Session, n: int, demands: Demands) -> Experiment:
    """Judge experiment `n` against the commit it was built on, save and log the verdict."""
    experiment = session.experiment(n)
    judged, runs = compare(
        session,
        experiment.parent_commit,
        experiment.commit,
        experiment.command,
        experiment.command,
        session.experiment_dir(n),
        demands,
    )
    settled = settle(session, experiment, judged, runs)
    session.rest()
    return settled


def settle(session: Session, experiment: Experiment, judged: Verdict, runs: Runs | None) -> Experiment:
    """Save the verdict with the experiment, and one entry in the log."""
    decision = {"accept": "accepted", "reject": "rejected", "inconclusive": "inconclusive"}[judged.verdict]
    settled = session.save(replace(experiment, verdict=judged, decision=decision))
    session.log(entry_of(settled, runs))
    return settled


def verify_combination(session: Session, command: Command, demands: Demands) -> Verdict | None:
    """Judge all accepted experiments together against the owner's state; None when nothing was accepted."""
    accepted = session.accepted()
    known = session.combination()
    if not accepted or (known is not None and known.verdict != "inconclusive"):
        return known
    place = session.directory / "combinations" / session.tip()[:12]
    judged, runs = compare(session, session.sandbox.base_ref, session.tip(), command, command, place, demands)
    session.save_combination(judged)
    session.log(
        replace(
            _measured(
                LogEntry(kind="combination", at_utc=now_utc(), what=_together(accepted), command=shlex.join(redact.argv(command.argv))),
                judged,
                runs,
            ),
            decision=judged.verdict,
        )
    )
    return judged


def verify_commits(session: Session, baseline: str | None, candidate: str | None, command: Command, demands: Demands) -> Verdict:
    """Judge two commits of the sandbox; without names the owner's state against all accepted experiments, measured anew."""
    if baseline is None and candidate is None:
        if not session.accepted():
            raise UsageError("nothing was accepted in this sandbox yet", "name --experiment N, or --baseline and --candidate")
        directory = session.directory / "combinations" / session.tip()[:12]
    else:
        directory = session.new_run("verify")
    judged, _ = compare(session, baseline or session.sandbox.base_ref, candidate or session.tip(), command, command, directory, demands)
    if baseline is None and candidate is None:
        session.save_combination(judged)
    session.rest()
    return judged


def _together(accepted: Collection[Experiment]) -> str:
    return "accepted together: " + ", ".join(f"{experiment.n} ({experiment.knob})" for experiment in accepted)


def entry_of(experiment: Experiment, runs: Runs | None) -> LogEntry:
    """The log's entry of one settled experiment."""
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
    )
    return _measured(entry, experiment.verdict, runs) if experiment.verdict else entry


def _measured(entry: LogEntry, judged: Verdict, runs: Runs | None) -> LogEntry:
    counted = [start for start in runs.starts if start.y is not None] if runs else []
    last = counted[-1] if counted else None
    return replace(
        entry,
        environment=dict(runs.machine) if runs else {},
        before_step_ms=last.baseline_step_ms if last else None,
        after_step_ms=last.candidate_step_ms if last else None,
        speedup=judged.speedup,
        fidelity=judged.fidelity.verdict if judged.fidelity else "",
        mean_abs_loss_delta=judged.fidelity.mean_abs_loss_delta if judged.fidelity else None,
        verdict=judged.verdict,
        reasons=judged.reasons,
    )
