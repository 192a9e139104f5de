"""What a report shows: the artefacts of a sandbox put together, nothing measured again."""

from __future__ import annotations

import shlex
from dataclasses import replace

from trainflash import redact, report, sandbox
from trainflash.errors import Rejected, UsageError
from trainflash.schema import CallTree, Diagnosis, Experiment, Plan, Timeline, read_document, write_atomically
from trainflash.workflow import approving, authoring, diagnosing, ledger, next_steps
from trainflash.workflow.session import Session


def view(session: Session, *, spent_s: float = 0.0, stopped_because: str = "") -> report.TuneView:
    """The state of the sandbox: what was diagnosed before and after what was accepted, experiments, diff, and how to approve it."""
    diagnoses = [diagnosis for diagnosis, _ in session.diagnoses()]
    accepted, ready = session.accepted(), session.approvable()
    if len(ready) < len(accepted):
        rest = ", ".join(str(experiment.n) for experiment in accepted[len(ready) :])
        stopped_because = f"{stopped_because}; not verified together yet: {rest} (trainflash verify)".lstrip("; ")
    command, refused = approve_command(session)
    if refused and any(one.files for one in ready):
        stopped_because = f"{stopped_because}; cannot be written back now: {refused}".lstrip("; ")
    return report.TuneView(
        project=session.sandbox.project,
        before=diagnoses[0] if diagnoses else None,
        after=diagnosing.of_accepted(session, diagnoses),
        experiments=tuple(map(_without_secrets, session.experiments())),
        combined=session.combination() if len(ready) == len(accepted) else ready[-1].verdict,
        diff=redact.text(sandbox.diff(session.sandbox, session.sandbox.base_ref, ready[-1].commit)) if ready else "",
        report_path=str(session.report_path),
        log_path=str(session.log_path),
        approve_command=command,
        run_as=approving.run_as(ready),
        next_steps=() if accepted else next_steps.after(session),
        ledger=ledger.of(session.experiments(), authoring.all_attempts(session)),
        stopped_because=stopped_because,
        spent_s=spent_s or sum(experiment.verdict.spent_s for experiment in session.experiments() if experiment.verdict),
    )


def approve_command(session: Session) -> tuple[str | None, str]:
    """The one command with which the owner approves what was accepted, or None and why it cannot be approved ("": nothing to approve)."""
    ready = session.approvable()
    if not ready:
        return None, ""
    everything = ready == session.accepted()
    try:
        proposal = approving.propose(session, None if everything else ready[-1].n)
    except (Rejected, UsageError) as bad:  # the owner edited the same place meanwhile
        return None, bad.message
    which = "--accepted" if everything else f"--experiment {ready[-1].n}"
    command = f"trainflash writeback {which} --sandbox {shlex.quote(session.sandbox.directory)}"
    return (command, "") if proposal.approvable else (None, proposal.reason)


def write_report(session: Session, shown: report.TuneView) -> None:
    """Write `report.html`, one self-contained page."""
    plan = session.plan()
    steps = report.Steps(*(_timeline(session, diagnosis) for diagnosis in (shown.before, shown.after)))
    calls = report.Calls(*(_call_tree(session, diagnosis) for diagnosis in (shown.before, shown.after)))
    page = report.html(shown, session.log_entries(), _plan_without_secrets(plan) if plan else None, steps, calls)
    write_atomically(session.report_path, page)


def _timeline(session: Session, diagnosis: Diagnosis | None) -> Timeline | None:
    """The steps of a diagnosis' run; None where they were not kept."""
    path = session.directory / "runs" / diagnosis.run / "timeline.json" if diagnosis else None
    return read_document(Timeline, path) if path and path.is_file() else None


def _call_tree(session: Session, diagnosis: Diagnosis | None) -> CallTree | None:
    """The call tree of a diagnosis' run; None where there is none."""
    path = session.directory / "runs" / diagnosis.run / "call_tree.json" if diagnosis else None
    return read_document(CallTree, path) if path and path.is_file() else None


def _without_secrets(experiment: Experiment) -> Experiment:
    command = replace(experiment.command, argv=redact.argv(experiment.command.argv), env=redact.environment(experiment.command.env))
    return replace(experiment, command=command, why=redact.text(experiment.why))


def _plan_without_secrets(plan: Plan) -> Plan:
    return replace(plan, briefs=tuple(replace(brief, code=redact.text(brief.code)) for brief in plan.briefs))
