"""What a write-back would change in the original as it is now, and the digest that binds an approval to exactly that."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainflash.errors import Rejected, UsageError
from trainflash.schema import Experiment, Sandbox, dump_json
from trainflash.writeback import branch as branches
from trainflash.writeback.content import Change, Content, on_disk
from trainflash.writeback.git import Git, difference
from trainflash.writeback.staging import as_stored

_RENEW = "make a sandbox of the project as it is now and measure there: trainflash sandbox discard, then create"
_COMMIT = "commit your own edits first, or leave --branch away: the change fits your working tree"


@dataclass(frozen=True)
class Proposal:
    """A write-back that could be made now. `approvable` False: `reason` says why not; `digest` binds diff, state and verdicts.

    `branch`: where it would be committed; None: it changes the working tree.
    """

    experiments: tuple[Experiment, ...]
    diff: str
    digest: str
    files: tuple[str, ...]
    approvable: bool
    reason: str
    changes: tuple[Change, ...] = field(default=(), repr=False)
    branch: branches.Branch | None = None
    run_as: str = ""  # the command that the owner types from then on, where an experiment changes that too


def make(sandbox: Sandbox, experiments: Sequence[Experiment], branch: str | None = None) -> Proposal:
    """The proposal for these experiments; the commit of the last one holds those before it.

    Where the owner edited a touched file since `create`, or the branch has another state of it, both changes are merged.
    Raises `Rejected` where they cannot be (with file and line), and `UsageError` where the change reaches outside the project or the
    sandbox is damaged.
    """
    if not experiments:
        raise UsageError("no experiment is named", "name one with --experiment N, or use --accepted")
    git = Git(sandbox.worktree)
    above = {one.commit: git.text("rev-list", f"{sandbox.base_ref}..{one.commit}").split() for one in experiments}
    last = max(experiments, key=lambda one: len(above[one.commit]))
    target = branches.find(sandbox, branch) if branch is not None else None
    committed = _committed(sandbox, git, last.commit)
    if target is not None:
        committed = as_stored(sandbox, target.parent, committed)
    changes = tuple(
        change
        for path, base, new in committed
        if (change := _merged(sandbox, git, path, _now(sandbox, git, path, target), base, new, target)) is not None
    )
    diff = _diff(sandbox, changes)
    reason = _refusal(experiments, last, above[last.commit])
    if not reason and not changes:
        reason = f"{'the original' if target is None else f'branch {target.name}'} has these changes already"
    return Proposal(
        tuple(experiments),
        diff.decode("utf-8", "surrogateescape"),
        _digest(sandbox, diff, changes, experiments, target),
        tuple(change.path for change in changes),
        not reason,
        reason,
        changes,
        target,
    )


def _refusal(experiments: Sequence[Experiment], last: Experiment, chain: Sequence[str]) -> str:
    """Why these experiments may not be written back; "" when they may. Fails closed. `chain`: all commits that the last one brings."""
    for one in experiments:
        if one.decision != "accepted":
            return f"experiment {one.n} is {one.decision}, not accepted"
        if one.verdict is None or one.verdict.verdict != "accept":
            return f"experiment {one.n} has no verdict that accepts it"
    commits = {one.commit for one in experiments}
    for sha in chain:
        if sha not in commits:
            return f"commit {sha[:10]} beneath experiment {last.n} belongs to none of the experiments named"
    missing = commits - set(chain)
    if missing:
        return f"experiment {last.n} does not build on commit {min(missing)[:10]} of another experiment named"
    return ""


def _committed(sandbox: Sandbox, git: Git, commit: str) -> list[tuple[str, Content | None, Content | None]]:
    """Path relative to the project, content in the owner's state, content in the commit."""
    out = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", sandbox.base_ref, commit).split(b"\0")[:-1]
    found: list[tuple[str, list[tuple[str, str]]]] = []  # path, then mode and object of both sides
    for facts, name in zip(out[::2], out[1::2], strict=True):
        old_mode, mode, old_oid, oid, _ = facts.decode().lstrip(":").split()
        path = _inside(sandbox, os.fsdecode(name))
        if "160000" in (old_mode, mode):
            raise UsageError(f"{path} is a submodule", "change submodules by hand")
        found.append((path, [(old_mode, old_oid), (mode, oid)]))
    held = sorted({oid for _, sides in found for mode, oid in sides if int(mode, 8)})
    data = dict(zip(held, git.contents(held), strict=True))
    committed = []
    for path, sides in found:
        base, new = (Content(mode, data[oid]) if int(mode, 8) else None for mode, oid in sides)
        if new and new.kind == "120000":
            _refuse_leaving_link(path, os.fsdecode(new.data))
        committed.append((path, base, new))
    return committed


def _inside(sandbox: Sandbox, path: str) -> str:
    """`path` relative to the project. Raises `UsageError` when a write there would leave the project or reach .git."""
    start = f"{sandbox.prefix}/" if sandbox.prefix else ""
    inside = path.removeprefix(start)
    parts = Path(inside).parts
    if not path.startswith(start) or ".." in parts or any(part.lower() == ".git" for part in parts):
        raise UsageError(f"{path} lies outside the project", "write back only changes of the project's own files")
    at = Path(sandbox.project)
    for part in parts[:-1]:
        at = at / part
        if at.is_symlink():
            raise UsageError(f"{at} is a link now; a write to {inside} would follow it", "restore the folder, or make a new sandbox")
    return inside


def _refuse_leaving_link(path: str, target: str) -> None:
    if os.path.isabs(target) or os.path.normpath(os.path.join(os.path.dirname(path), target)).startswith(".."):
        raise UsageError(f"{path} would be a link out of the project, to {target}", "link only to files of the project")


def _now(sandbox: Sandbox, git: Git, path: str, target: branches.Branch | None) -> Content | None:
    """The file as it is where the change is to be written."""
    if target is None:
        return on_disk(Path(sandbox.project), path)
    return branches.content(git, target.parent, os.path.join(sandbox.prefix, path))


def _merged(
    sandbox: Sandbox,
    git: Git,
    path: str,
    now: Content | None,
    base: Content | None,
    new: Content | None,
    target: branches.Branch | None,
) -> Change | None:
    """The change to make to the file as it is now; None when it has the change already."""
    if now == new:
        return None
    if now == base:
        return Change(path, now, new)
    if now is None or base is None or new is None or "120000" in (now.kind, base.kind, new.kind):
        what = "deleted" if now is None else "made" if base is None else "changed"
        if target:
            raise Rejected(f"{path} is not on branch {target.name} as it was measured", _COMMIT)
        raise Rejected(f"{path}: the owner {what} this file since the sandbox was created, and so does the experiment", _RENEW)
    data, line = _merge(sandbox, git, now.data, base.data, new.data)
    if data is None and target:
        raise Rejected(f"{path}{line}: branch {target.name} has something else in the place that changes", _COMMIT)
    if data is None:
        raise Rejected(f"{path}{line}: the owner changed the same place since the sandbox was created", _RENEW)
    merged = Content(new.kind if new.kind != base.kind else now.kind, data)
    return None if merged == now else Change(path, now, merged)


def _merge(sandbox: Sandbox, git: Git, now: bytes, base: bytes, new: bytes) -> tuple[bytes | None, str]:
    """Both changes together; None where they meet, and then the line as it is shown after the path."""
    if now == base or new == base:
        return (new if now == base else now), ""
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="merge-") as folder:
        names = []
        for name, data in (("now", now), ("base", base), ("new", new)):
            Path(folder, name).write_bytes(data)
            names.append(os.path.join(folder, name))
        code, out, _ = git.attempt("merge-file", "-p", "--quiet", *names)
    if code == 0:
        return out, ""
    return None, f":{_conflict_line(out, now)}" if code < 128 else " (not text)"


def _conflict_line(merged: bytes, now: bytes) -> int:
    """The line of the owner's file (from 1) at which the first conflict begins."""
    lines = merged.split(b"\n")
    start = next((number for number, line in enumerate(lines) if line.startswith(b"<<<<<<< ")), 0)
    end = next((number for number, line in enumerate(lines) if number > start and line.startswith(b"=======")), start + 1)
    wanted, theirs = lines[start + 1 : end], now.split(b"\n")
    places = [at for at in range(len(theirs) - len(wanted) + 1) if theirs[at : at + len(wanted)] == wanted] if wanted else []
    return min(places, key=lambda at: abs(at - start), default=start) + 1


def _diff(sandbox: Sandbox, changes: Sequence[Change]) -> bytes:
    """Unified diff of the original now against the original afterwards, binary and mode changes included."""
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="proposal-") as folder:
        before = {change.path: change.before for change in changes if change.before}
        return difference(Path(folder), before, {change.path: change.after for change in changes if change.after})


def _digest(
    sandbox: Sandbox, diff: bytes, changes: Sequence[Change], experiments: Sequence[Experiment], target: branches.Branch | None
) -> str:
    """SHA-256 over the diff, the commit it started from, the touched files as they are, every verdict, and the branch.

    Each part with its length.
    """
    parts = [diff, sandbox.project.encode("utf-8", "surrogateescape"), sandbox.base_ref.encode()]
    parts += [f"{change.path}\0{change.before.digest if change.before else ''}".encode("utf-8", "surrogateescape") for change in changes]
    parts += [f"{one.n} {one.commit} {one.decision} {dump_json(one.verdict, indent=None)}".encode() for one in experiments]
    parts += [f"branch {target.name} {target.parent}".encode("utf-8", "surrogateescape")] if target else []
    whole = hashlib.sha256()
    for part in parts:
        whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()
