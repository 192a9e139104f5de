"""Run the owner's program under the probe and say where its time goes."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainflash import launch, redact, telemetry, trace
from trainflash.diagnosis import diagnose as find
from trainflash.errors import ProgramFailed, UsageError
from trainflash.schema import Command, Diagnosis, LogEntry, RunRecord, Summary, as_changed, read_document, write_document
from trainflash.summary import call_tree, steady_part, summarize, timeline
from trainflash.workflow import ceilings as what_ifs
from trainflash.workflow import moving, ordering, peaks, run_notes, ties
from trainflash.workflow.session import Session, now_utc

# A diagnosis wants an epoch boundary, an evaluation and a repeated sample; a minute shows them in most programs, and
# the steps bound programs that are fast. Both are bounds on cost, not on truth: the diagnosis abstains on too little.
SECONDS = 60.0
LEAST_STEPS = 60
FEW_STEPS = 4  # own: of steps of half a minute; two that count behind a warm-up of as many
GIVE_UP_S = 1800.0  # a program that has not come that far by then is stuck, or needs --steps and patience


def diagnose(
    session: Session,
    command: Command,
    *,
    steps: int | None = None,
    warmup: int | None = None,
    sample_hz: float | None = None,
    seconds: float = SECONDS,
    give_up_s: float = GIVE_UP_S,
    ceilings: bool = False,
    in_place: bool = False,
    online: bool = False,
    writable: tuple[str, ...] = (),
) -> tuple[Diagnosis, Summary]:
    """Diagnose `command` in the sandbox's worktree; raises `ProgramFailed` when it fails or never trains.

    `warmup` steps are left out instead of those that look like warm-up. `sample_hz`: how often lines are sampled, 0 for never. A program
    that has not come far enough by `give_up_s` is ended.
    With `ceilings` the program is started several more times to measure how much faster it is without what was found.
    """
    run_dir = session.new_run("diagnose")
    if not in_place and not session.dirty():
        session.rest()  # a killed command may have left a candidate in worktree/
    if not in_place:
        moving.remember(session, run_dir)
    label = f"diagnose {run_dir.name}"
    session.on_progress(label, 0, steps or 0)
    with telemetry.recording(run_dir):
        record = launch.run(
            session.sandbox,
            "candidate",
            command,
            run_dir,
            capture="diagnose",
            max_steps=steps,
            max_seconds=None if steps else seconds,
            min_steps=None if steps else LEAST_STEPS + (warmup or 0),
            few_steps=None if steps else FEW_STEPS + (warmup or 0),
            in_place=in_place,
            online=online,
            writable=writable,
            sample_hz=sample_hz,
            peaks=peaks.named(session.directory.parent),
            timeout=give_up_s + seconds,
            redact=redact.text,
            on_step=lambda done: session.on_progress(label, done, steps or 0),
        )
    steps_seen = launch.steps_so_far(run_dir)
    try:
        launch.require_success(record, run_dir)
    except ProgramFailed as failed:
        if steps_seen >= LEAST_STEPS:
            kept = f"its {steps_seen} complete steps are kept: `trainflash diagnose --run {run_dir.name}` says where their time went"
            failed.mend = f"{failed.mend}; {kept}"
        raise
    if steps_seen == 0:
        trace.load(run_dir)  # says why there is nothing
    diagnosis, summary = from_run(session, run_dir, warmup=warmup)
    if ceilings:
        what_ifs.measure(session, command, run_dir, diagnosis, summary, in_place=in_place, online=online, writable=writable)
        diagnosis, summary = from_run(session, run_dir, warmup=warmup)
    first = diagnosis.findings[0] if diagnosis.findings else None
    accepted = () if in_place else session.accepted()
    session.log(
        LogEntry(
            kind="diagnosis",
            at_utc=now_utc(),
            what=first.summary if first else "no finding",
            why=diagnosis.abstained or "",
            experiment=accepted[-1].n if accepted else None,
            finding=first.kind if first else None,
            command=shlex.join(redact.argv(command.argv)),
            environment={**telemetry.machine(), **summary.versions},
            before_step_ms=summary.step_ms.mean_ms,
            before=summary.phases,
        )
    )
    return diagnosis, summary


def with_ceilings(
    session: Session, command: Command, run: str, *, total_s: float, online: bool = False, writable: tuple[str, ...] = ()
) -> tuple[Diagnosis, Summary]:
    """The diagnosis of `run` again, with its ceilings measured in more starts of the program: about `total_s` seconds for all of them."""
    run_dir = session.run_dir(run)
    known = from_run(session, run_dir)
    what_ifs.measure(session, command, run_dir, *known, online=online, writable=writable, total_s=total_s)
    return from_run(session, run_dir)


def from_run(session: Session, run_dir: Path, *, warmup: int | None = None) -> tuple[Diagnosis, Summary]:
    """Diagnose again from the events of an earlier run, without a rerun. Raises `UsageError` when `warmup` leaves no step."""
    recorded = trace.load(run_dir)
    steps = recorded.ranks[0].steps
    if warmup is not None and warmup >= steps:
        mend = f"`trainflash diagnose --run {run_dir.name} --warmup N` with less, or a longer run"
        raise UsageError(f"a warm-up of {warmup} steps leaves nothing of the run's {steps}", mend)
    part = steady_part(recorded.ranks[0], warmup)
    measured = telemetry.derive(telemetry.read(run_dir / telemetry.FILE), part.from_ns, part.to_ns)
    machine = peaks.of(session.directory.parent, recorded.ranks[0])
    summary = summarize(recorded, run=run_dir.name, project=session.sandbox.project, warmup=warmup, telemetry=measured, peaks=machine)
    measured_ceilings = what_ifs.recorded(run_dir)
    if measured_ceilings is not None:
        summary = replace(summary, what_if=measured_ceilings.what_if)
    diagnosis = ties.with_ties(find(summary), recorded, warmup, machine)
    diagnosis = replace(diagnosis, notes=(*recorded.others, *diagnosis.notes, *run_notes.of(run_dir), *what_ifs.notes(measured_ceilings)))
    diagnosis = ordering.with_knobs(diagnosis, summary, session.log_entries())
    write_document(run_dir / "summary.json", summary)
    write_document(run_dir / "call_tree.json", call_tree(recorded, run=run_dir.name, warmup=warmup))
    write_document(run_dir / "timeline.json", timeline(recorded, run=run_dir.name, warmup=warmup))
    write_document(run_dir / "findings.json", diagnosis)
    return diagnosis, summary


def protection(session: Session, run: str) -> str | None:
    """What protected the original in `run` ("in_place": nothing did); None for a run that was killed before it was written down."""
    path = session.run_dir(run) / "run.json"
    return read_document(RunRecord, path).protection if path.is_file() else None


def latest(session: Session, command: Command) -> tuple[Diagnosis, Summary] | None:
    """The newest diagnosis of this command in the sandbox, if any: as what was accepted changes it, or as it was typed."""
    names = {redact.argv(command.argv)}
    with contextlib.suppress(UsageError):  # another command than the one whose words were changed
        names.add(redact.argv(as_changed(command, session.accepted()).argv))
    for path in sorted((session.directory / "runs").glob("diagnose-*/findings.json"), reverse=True):
        record = path.with_name("run.json")
        if record.is_file() and read_document(RunRecord, record).command.argv in names:
            return read_document(Diagnosis, path), read_document(Summary, path.with_name("summary.json"))
    return None


def of_accepted(session: Session, diagnoses: Sequence[Diagnosis]) -> Diagnosis | None:
    """The newest of `diagnoses`, oldest first, of what is accepted now, under the command that goes with it; None where there is none."""
    accepted = session.accepted()
    if not accepted:
        return None
    command = as_changed(accepted[-1].command, accepted)
    wanted = redact.argv(command.argv), redact.environment(command.env)
    for diagnosis in reversed(diagnoses):
        record = session.directory / "runs" / diagnosis.run / "run.json"
        known = read_document(RunRecord, record).command if record.is_file() else None
        if known and (known.argv, dict(known.env)) == wanted and moving.is_of(session, diagnosis.run, session.tip()):
            return diagnosis
    return None
