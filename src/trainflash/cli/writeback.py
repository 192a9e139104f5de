"""`trainflash writeback`: the only command that changes the owner's project, and only with approval of exactly that diff."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainflash.cli.options import json_option, sandbox_option
from trainflash.cli.output import Output
from trainflash.errors import ApprovalNeeded, Rejected, UsageError

if TYPE_CHECKING:
    from trainflash.workflow import approving


@click.command(short_help="Write a proven change into the project, once approved.")
@click.option("--experiment", type=int, help="Write back this accepted experiment, with those it was built on.")
@click.option("--accepted", is_flag=True, help="Write back all accepted experiments.")
@click.option("--approve", metavar="DIGEST", help="Approve the diff with this digest, reviewed elsewhere (see --dry-run).")
@click.option("--branch", metavar="NAME", help="Commit it on this branch instead; the working tree stays as it is.")
@click.option("--dry-run", is_flag=True, help="Show the diff and its digest; change nothing.")
@click.option("--undo", is_flag=True, help="Give back what stood there before the last write-back.")
@sandbox_option
@json_option
def writeback(
    experiment: int | None,
    accepted: bool,
    approve: str | None,
    branch: str | None,
    dry_run: bool,
    undo: bool,
    sandbox: Path | None,
    as_json: bool,
) -> None:
    """Show the proven change and, once you approve exactly this diff, write it into your project.

    \b
    trainflash writeback --accepted --dry-run    look at it
    trainflash writeback --accepted              look at it, and approve it on the terminal
    trainflash writeback --accepted --branch faster    commit it there; your files stay as they are
    trainflash writeback --undo                  take it back
    """
    from trainflash import report
    from trainflash.workflow import answers, approving, session

    if sum((experiment is not None, accepted, undo)) != 1:
        raise UsageError("what to write back is missing or given twice", "give one of --accepted, --experiment N or --undo")
    if undo and branch is not None:
        raise UsageError("--undo takes no branch", "it takes back the last write-back, wherever it went")
    output = Output(as_json)
    found = session.existing_session(Path.cwd(), sandbox)
    with found.locked():
        if undo:
            given = approving.undo(found)
            output.answer(answers.approval(given), _undone(given))
            return
        proposal = approving.propose(found, experiment, branch)
        if dry_run:
            output.answer(answers.proposal(proposal), report.proposal(proposal))
            return
        if not proposal.approvable:
            raise Rejected(f"this cannot be approved: {proposal.reason}", "see `trainflash log`")
        if approve is None:
            _ask(output, found, proposal)
            given = approving.write_back(found, experiment, approved_digest=proposal.digest, how="terminal", branch=branch)
        else:
            given = approving.write_back(found, experiment, approved_digest=approve, how="digest", branch=branch)
    output.answer(
        answers.approval(given),
        f"committed to branch {given.branch} as {given.commit[:10]}: {', '.join(given.files)}"
        if given.branch
        else f"written: {', '.join(given.files)}",
        f"undo with: trainflash writeback --undo --sandbox {found.sandbox.directory}",
    )


def _undone(given: approving.Approval) -> str:
    return f"put branch {given.branch} back" if given.branch else f"gave back {', '.join(given.files)}"


def _ask(output: Output, found: approving.Session, proposal: approving.writeback.Proposal) -> None:
    """Show the diff and ask the owner on the terminal. Raises `ApprovalNeeded` when there is none, or the answer is not yes."""
    from trainflash import report
    from trainflash.workflow.approving import refuse

    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # the diff is shown on stderr: nobody approves what he cannot see
        refuse(found, proposal.digest, "no terminal")
        raise ApprovalNeeded(
            "the owner has not approved this diff",
            f"the owner runs this on a terminal, or approves what --dry-run showed with `--approve {proposal.digest}`",
        )
    output.stderr.print(report.proposal(proposal))
    where = f"Commit exactly this diff on branch {proposal.branch.name}" if proposal.branch else "Write exactly this diff into your project"
    if not click.confirm(f"{where}?", default=False, err=True):
        refuse(found, proposal.digest, "terminal")
        raise ApprovalNeeded("not approved; nothing was changed", "the experiment stays in the sandbox")
