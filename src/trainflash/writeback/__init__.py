"""The only place that writes into the owner's project: an accepted change, approved by its digest, whole or not at all.

It changes the working tree, or makes a commit on a branch and leaves the working tree alone.

Every write keeps what was there before in `<sandbox>/writebacks/<digest>/`, so that `undo` restores it exactly.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Literal

from trainflash.errors import ApprovalNeeded, Rejected, UsageError
from trainflash.schema import Approval, Experiment, Sandbox, read_document, write_document
from trainflash.writeback import branch as branches
from trainflash.writeback import journal
from trainflash.writeback.content import Change, Content
from trainflash.writeback.proposal import Proposal, make

__all__ = ["Change", "Content", "Proposal", "apply", "approvals", "propose", "recover", "undo"]


def propose(sandbox: Sandbox, experiments: Sequence[Experiment], branch: str | None = None) -> Proposal:
    """What writing back these experiments would change now; writes nothing (but completes the rollback of a killed write).

    With `branch` it would be committed there, on top of it or of the commit that is checked out, and the working tree stays.

    Raises `Rejected` where the owner's later edits meet the change, and `UsageError` where it reaches outside the project.
    """
    with _locked(sandbox):
        return make(sandbox, experiments, branch)


def apply(sandbox: Sandbox, proposal: Proposal, *, approved_digest: str, how: Literal["terminal", "digest", "elicitation"]) -> Approval:
    """Write the proposal into the original, if it is still exactly what was approved.

    Raises `Rejected` when it may not be written, `ApprovalNeeded` when the digest is another one, and `UsageError` when a file cannot
    be written; nothing is changed then.
    """
    with _locked(sandbox):
        fresh = make(sandbox, proposal.experiments, proposal.branch.name if proposal.branch else None)
        for one in (proposal, fresh):  # who made the proposal may know a reason that the files do not show
            if not one.approvable:
                raise Rejected(f"this is not to be written back: {one.reason}", "write back accepted experiments only")
        if not approved_digest or approved_digest != fresh.digest:
            raise ApprovalNeeded(
                f"the approval is for {approved_digest[:12] or 'nothing'}, what would be written now is {fresh.digest[:12]}",
                "review it: trainflash writeback --dry-run, then approve that digest",
            )
        record, commit = _folder(sandbox) / fresh.digest, ""
        if fresh.branch:
            commit = branches.write(record, sandbox, fresh.branch, fresh.changes, _message(fresh))
        else:
            journal.write(record, Path(sandbox.project), fresh.changes)
        made = Approval(
            digest=fresh.digest,
            experiments=tuple(one.n for one in fresh.experiments),
            how=how,
            at_utc=datetime.now(timezone.utc).isoformat(timespec="microseconds"),
            files=fresh.files,
            branch=fresh.branch.name if fresh.branch else "",
            commit=commit,
        )
        try:
            write_document(_folder(sandbox) / f"{fresh.digest}.json", made)
            _kind(record).finish(record)
        except BaseException:
            _recover(sandbox)
            raise
        return made


def undo(sandbox: Sandbox) -> Approval:
    """Restore exactly what was there before the last write-back that still stands.

    Raises `UsageError` when there is none, or the owner edited one of its files since; nothing is changed then.
    """
    with _locked(sandbox):
        standing = [one for one in approvals(sandbox) if not one.undone]
        if not standing:
            raise UsageError("there is no write-back to undo", "see trainflash log")
        last = standing[-1]
        record = _folder(sandbox) / last.digest
        if last.branch:
            branches.undo(record)
            return _mark_undone(sandbox, last)
        edited = journal.edited(record)
        if edited:
            raise UsageError(f"{edited[0]} was edited since the write-back", f"restore it by hand; what was there before lies in {record}")
        journal.reopen(record)
        journal.roll_back(record)
        return _mark_undone(sandbox, last)


def recover(sandbox: Sandbox) -> tuple[str, ...]:
    """Roll back a write that was killed; returns files that the owner edited meanwhile, which are left alone."""
    if not _folder(sandbox).is_dir():
        return ()
    with _locked(sandbox, and_recover=False):
        return tuple(_recover(sandbox))


def approvals(sandbox: Sandbox) -> tuple[Approval, ...]:
    """Every write-back of this sandbox, oldest first, undone ones included."""
    found = [read_document(Approval, path) for path in _folder(sandbox).glob("*.json")]
    return tuple(sorted(found, key=lambda one: one.at_utc))


def _folder(sandbox: Sandbox) -> Path:
    return Path(sandbox.directory, "writebacks")


def _recover(sandbox: Sandbox) -> list[str]:
    left: list[str] = []
    standing = {one.digest: one for one in approvals(sandbox) if not one.undone}
    for record in sorted(path.parent for path in _folder(sandbox).glob("*/*.json")):
        kind = _kind(record)
        if kind.state_of(record) == kind.WRITING:
            left += kind.roll_back(record)
        if kind.state_of(record) == kind.BACK and record.name in standing:  # a kill may come between the two
            _mark_undone(sandbox, standing[record.name])
    return left


def _kind(record: Path) -> ModuleType:
    """The module that wrote this record and can take it back."""
    return branches if (record / branches.RECORD).exists() else journal


def _message(proposal: Proposal) -> str:
    knobs = ", ".join(one.knob for one in proposal.experiments)
    return f"Faster training: {knobs}\n\nMeasured and written back by trainflash; approved as {proposal.digest[:12]}.\n"


def _mark_undone(sandbox: Sandbox, approval: Approval) -> Approval:
    undone = replace(approval, undone=True)
    write_document(_folder(sandbox) / f"{approval.digest}.json", undone)
    return undone


@contextlib.contextmanager
def _locked(sandbox: Sandbox, *, and_recover: bool = True) -> Iterator[None]:
    """One write-back at a time; what an earlier one left half done is rolled back first."""
    folder = _folder(sandbox)
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if and_recover:
            _recover(sandbox)
        yield
    finally:
        os.close(handle)
