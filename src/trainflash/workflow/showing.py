"""What a report shows: the artefacts of a sandbox put together, nothing measured again."""

from __future__ import annotations

from trainflash import redact, report, sandbox
from trainflash.schema import Diagnosis, write_atomically
from trainflash.workflow import approving
from trainflash.workflow.session import Session


def view(session: Session, *, spent_s: float = 0.0, stopped_because: str = "") -> report.TuneView:
    """The state of the sandbox: first and newest diagnosis, experiments, the accepted diff, and how to approve it."""
    diagnoses = [diagnosis for diagnosis, _ in session.diagnoses()]
    accepted, ready = session.accepted(), session.approvable()
    if len(ready) < len(accepted):
        rest = ", ".join(str(experiment.n) for experiment in accepted[len(ready) :])
        stopped_because = f"{stopped_because}; not verified together yet: {rest} (trainflash verify)".lstrip("; ")
    newest: Diagnosis | None = diagnoses[-1] if len(diagnoses) > 1 and accepted else None
    return report.TuneView(
        project=session.sandbox.project,
        before=diagnoses[0] if diagnoses else None,
        after=newest,
        experiments=session.experiments(),
        combined=session.combination() if len(ready) == len(accepted) else ready[-1].verdict,
        diff=redact.text(sandbox.diff(session.sandbox, session.sandbox.base_ref, ready[-1].commit)) if ready else "",
        report_path=str(session.report_path),
        log_path=str(session.log_path),
        approve_command=approve_command(session),
        stopped_because=stopped_because,
        spent_s=spent_s or sum(experiment.verdict.spent_s for experiment in session.experiments() if experiment.verdict),
    )


def approve_command(session: Session) -> str | None:
    """The one command with which the owner approves what was accepted; None when there is nothing to approve."""
    ready = session.approvable()
    everything = ready == session.accepted()
    if not ready or not approving.propose(session, None if everything else ready[-1].n).approvable:
        return None
    which = "--accepted" if everything else f"--experiment {ready[-1].n}"
    return f"trainflash writeback {which} --sandbox {session.sandbox.directory}"


def write_report(session: Session, shown: report.TuneView) -> None:
    """Write `report.html`, one self-contained page."""
    write_atomically(session.report_path, report.html(shown, session.log_entries(), session.plan()))
