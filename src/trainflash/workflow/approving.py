"""The way back into the owner's project: only accepted, only what was verified together, only what the owner approved."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from trainflash import redact, writeback
from trainflash.errors import UsageError
from trainflash.schema import Approval, Experiment, LogEntry, as_changed
from trainflash.workflow.session import Session, now_utc


def chosen(session: Session, n: int | None) -> tuple[Experiment, ...]:
    """The experiments to write back: number `n` with those it was built on, or all accepted ones (`n` None)."""
    accepted = session.accepted()
    if n is None:
        if not accepted:
            raise UsageError("no experiment was accepted in this sandbox", "see `trainflash log` for what was tried, and why not")
        return accepted
    experiment = session.experiment(n)
    if experiment.decision != "accepted":
        raise UsageError(f"experiment {n} is {experiment.decision}, not accepted", "only accepted experiments can be written back")
    if experiment not in accepted:
        raise UsageError(f"experiment {n} builds on a state that is no longer accepted", "see `trainflash log`, and try it again")
    return tuple(e for e in accepted if e.n <= n)


def propose(session: Session, n: int | None, branch: str | None = None) -> writeback.Proposal:
    """The diff that would be written, and its digest; with `branch`, what would be committed there."""
    experiments = chosen(session, n)
    proposal = replace(writeback.propose(session.sandbox, experiments, branch), run_as=run_as(experiments))
    if proposal.run_as and not any(one.files for one in experiments):
        reason = f"no file changes, only the command does: from now on type `{proposal.run_as}`"
        return replace(proposal, approvable=False, reason=reason)
    if len(experiments) == 1:
        return proposal
    combined = session.combination() if experiments == session.accepted() else None
    if combined is None or combined.verdict != "accept":
        reason = "these experiments were not verified together; run `trainflash verify` on the combination, or write back the first alone"
        return replace(proposal, approvable=False, reason=reason)
    return proposal


def run_as(experiments: Sequence[Experiment]) -> str:
    """The owner's command as these experiments change it, without secrets; "" where they leave it as it is."""
    if not any(one.words or one.environment for one in experiments):
        return ""
    changed = as_changed(replace(experiments[0].command, env={}), experiments)
    variables = (f"{name}={value}" for name, value in redact.environment(changed.env).items())
    return shlex.join((*variables, *redact.argv(changed.argv)))


def write_back(
    session: Session,
    n: int | None,
    *,
    approved_digest: str,
    how: Literal["terminal", "digest", "elicitation"],
    branch: str | None = None,
) -> Approval:
    """Write exactly the approved diff. Raises `ApprovalNeeded` when the digest is another, and changes nothing."""
    proposal = propose(session, n, branch)
    try:
        approval = writeback.apply(session.sandbox, proposal, approved_digest=approved_digest, how=how)
    except BaseException:
        session.log(_entry(f"write-back of {proposal.digest[:12]} refused", "refused", how, proposal.digest))
        raise
    where = f" to branch {approval.branch}" if approval.branch else ""
    session.log(_entry(f"wrote {len(approval.files)} files back{where}: {', '.join(approval.files)}", "approved", how, approval.digest))
    return approval


def refuse(session: Session, digest: str, how: str) -> None:
    """Log that the owner was asked and said no, or could not be asked."""
    session.log(_entry(f"write-back of {digest[:12]} not approved", "refused", how, digest))


def undo(session: Session) -> Approval:
    """Give back what stood there before the last write-back."""
    approval = writeback.undo(session.sandbox)
    session.log(_entry(f"write-back of {approval.digest[:12]} undone", "undone", "command line", approval.digest))
    return approval


def _entry(what: str, decision: str, how: str, digest: str) -> LogEntry:
    return LogEntry(kind="writeback", at_utc=now_utc(), what=what, decision=decision, diff_digest=digest, by=f"owner ({how})")
