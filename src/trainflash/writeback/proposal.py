"""What a write-back would change in the original as it is now, and the digest that binds an approval to exactly that."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainflash.errors import Rejected, UsageError
from trainflash.schema import Experiment, Sandbox, dump_json
from trainflash.writeback.git import Git

_RENEW = "make a sandbox of the project as it is now and measure there: trainflash sandbox discard, then create"


@dataclass(frozen=True)
class Content:
    """One file: `kind` as git writes it ("100644", "100755", "120000": a link, whose target is `data`)."""

    kind: str
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of kind and bytes."""
        return hashlib.sha256(self.kind.encode() + b"\0" + self.data).hexdigest()


@dataclass(frozen=True)
class Change:
    """One file of the project: `path` relative to it; None: absent."""

    path: str
    before: Content | None
    after: Content | None


@dataclass(frozen=True)
class Proposal:
    """A write-back that could be made now. `approvable` False: `reason` says why not; `digest` binds diff, state and verdicts."""

    experiments: tuple[Experiment, ...]
    diff: str
    digest: str
    files: tuple[str, ...]
    approvable: bool
    reason: str
    changes: tuple[Change, ...] = field(default=(), repr=False)


def make(sandbox: Sandbox, experiments: Sequence[Experiment]) -> Proposal:
    """The proposal for these experiments; the commit of the last one holds those before it.

    Where the owner edited a touched file since `create`, both changes are merged. Raises `Rejected` where they cannot be (with file
    and line), and `UsageError` where the change reaches outside the project or the sandbox is damaged.
    """
    if not experiments:
        raise UsageError("no experiment is named", "name one with --experiment N, or use --accepted")
    git = Git(sandbox.worktree)
    last = max(experiments, key=lambda one: int(git.text("rev-list", "--count", f"{sandbox.base_ref}..{one.commit}")))
    changes = tuple(
        change
        for path, base, new in _committed(sandbox, git, last.commit)
        if (change := _merged(sandbox, git, path, base, new)) is not None
    )
    diff = _diff(sandbox, git, changes)
    reason = _refusal(sandbox, git, experiments, last)
    if not reason and not changes:
        reason = "the original has these changes already"
    return Proposal(
        tuple(experiments),
        diff.decode("utf-8", "surrogateescape"),
        _digest(sandbox, diff, changes, experiments),
        tuple(change.path for change in changes),
        not reason,
        reason,
        changes,
    )


def on_disk(project: Path, path: str) -> Content | None:
    """The file as it is now; None where there is nothing. Raises `UsageError` for a folder or a special file."""
    target = project / path
    try:
        facts = target.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return Content("120000", os.readlink(os.fsencode(target)))
        if stat.S_ISREG(facts.st_mode):
            return Content("100755" if facts.st_mode & stat.S_IXUSR else "100644", target.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as bad:
        raise UsageError(f"{target}: {bad.strerror}", "run as the owner of the project") from None
    raise UsageError(f"{target} is no regular file", "restore the file, or make a new sandbox")


def _refusal(sandbox: Sandbox, git: Git, experiments: Sequence[Experiment], last: Experiment) -> str:
    """Why these experiments may not be written back; "" when they may. Fails closed."""
    for one in experiments:
        if one.decision != "accepted":
            return f"experiment {one.n} is {one.decision}, not accepted"
        if one.verdict is None or one.verdict.verdict != "accept":
            return f"experiment {one.n} has no verdict that accepts it"
    commits = {one.commit for one in experiments}
    for sha in git.text("rev-list", f"{sandbox.base_ref}..{last.commit}").split():
        if sha not in commits:
            return f"commit {sha[:10]} beneath experiment {last.n} belongs to none of the experiments named"
    missing = commits - set(git.text("rev-list", f"{sandbox.base_ref}..{last.commit}").split())
    if missing:
        return f"experiment {last.n} does not build on commit {min(missing)[:10]} of another experiment named"
    return ""


def _committed(sandbox: Sandbox, git: Git, commit: str) -> list[tuple[str, Content | None, Content | None]]:
    """Path relative to the project, content in the owner's state, content in the commit."""
    out = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", sandbox.base_ref, commit).split(b"\0")[:-1]
    found = []
    for facts, name in zip(out[::2], out[1::2], strict=True):
        old_mode, mode, old_oid, oid, _ = facts.decode().lstrip(":").split()
        path = _inside(sandbox, os.fsdecode(name))
        if "160000" in (old_mode, mode):
            raise UsageError(f"{path} is a submodule", "change submodules by hand")
        base = Content(old_mode, git.run("cat-file", "blob", old_oid)) if int(old_mode, 8) else None
        new = Content(mode, git.run("cat-file", "blob", oid)) if int(mode, 8) else None
        if new and new.kind == "120000":
            _refuse_leaving_link(path, os.fsdecode(new.data))
        found.append((path, base, new))
    return found


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


def _merged(sandbox: Sandbox, git: Git, path: str, base: Content | None, new: Content | None) -> Change | None:
    """The change to make to the file as it is now; None when it has the change already."""
    now = on_disk(Path(sandbox.project), path)
    if now == new:
        return None
    if now == base:
        return Change(path, now, new)
    if now is None or base is None or new is None or "120000" in (now.kind, base.kind, new.kind):
        what = "deleted" if now is None else "made" if base is None else "changed"
        raise Rejected(f"{path}: the owner {what} this file since the sandbox was created, and so does the experiment", _RENEW)
    data = _merge(sandbox, git, path, now.data, base.data, new.data)
    merged = Content(new.kind if new.kind != base.kind else now.kind, data)
    return None if merged == now else Change(path, now, merged)


def _merge(sandbox: Sandbox, git: Git, path: str, now: bytes, base: bytes, new: bytes) -> bytes:
    """Both changes together. Raises `Rejected` with file and line where they meet."""
    if now == base or new == base:
        return new if now == base else now
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="merge-") as folder:
        names = []
        for name, data in (("now", now), ("base", base), ("new", new)):
            Path(folder, name).write_bytes(data)
            names.append(os.path.join(folder, name))
        code, out, _ = git.attempt("merge-file", "-p", "--quiet", *names)
    if code == 0:
        return out
    where = f"{path}:{_conflict_line(out, now)}" if code < 128 else f"{path} (not text)"
    raise Rejected(f"{where}: the owner changed the same place since the sandbox was created", _RENEW)


def _conflict_line(merged: bytes, now: bytes) -> int:
    """The line of the owner's file (from 1) at which the first conflict begins."""
    lines = merged.split(b"\n")
    start = next((number for number, line in enumerate(lines) if line.startswith(b"<<<<<<< ")), 0)
    end = next((number for number, line in enumerate(lines) if number > start and line.startswith(b"=======")), start + 1)
    wanted, theirs = lines[start + 1 : end], now.split(b"\n")
    places = [at for at in range(len(theirs) - len(wanted) + 1) if theirs[at : at + len(wanted)] == wanted] if wanted else []
    return min(places, key=lambda at: abs(at - start), default=start) + 1


def _diff(sandbox: Sandbox, git: Git, changes: Sequence[Change]) -> bytes:
    """Unified diff of the original now against the original afterwards, binary and mode changes included."""
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="proposal-") as folder:
        own = git.scratch(Path(folder))
        trees = []
        for side in ("before", "after"):
            lines = []
            for change in changes:
                content: Content | None = getattr(change, side)
                if content:
                    oid = own.text("hash-object", "-w", "--no-filters", "--stdin", stdin=content.data)
                    lines.append(f"{content.kind} {oid}\t".encode() + os.fsencode(change.path) + b"\0")
            own.run("read-tree", "--empty")
            own.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
            trees.append(own.text("write-tree"))
        return own.run("diff-tree", "-p", "-r", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", *trees)


def _digest(sandbox: Sandbox, diff: bytes, changes: Sequence[Change], experiments: Sequence[Experiment]) -> str:
    """SHA-256 over the diff, the commit it started from, the touched files as they are, and every verdict; each part with its length."""
    parts = [diff, sandbox.project.encode("utf-8", "surrogateescape"), sandbox.base_ref.encode()]
    parts += [f"{change.path}\0{change.before.digest if change.before else ''}".encode("utf-8", "surrogateescape") for change in changes]
    parts += [f"{one.n} {one.commit} {one.decision} {dump_json(one.verdict, indent=None)}".encode() for one in experiments]
    whole = hashlib.sha256()
    for part in parts:
        whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()
