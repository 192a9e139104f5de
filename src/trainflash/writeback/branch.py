"""Writes a change as a commit on a branch: working tree, index and the branch that is checked out stay as they are.

The commit is made of objects alone; then one ref moves, and that is all or nothing. A record in the sandbox says what moved, so that
what a kill left, git's lock files too, is taken back by the next command. No hook runs, nothing is signed, no identity is needed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from trainflash.errors import Rejected, UsageError
from trainflash.schema import Sandbox, write_atomically
from trainflash.writeback.content import Change, Content
from trainflash.writeback.git import Git

RECORD = "branch.json"
WRITING, DONE, BACK = "writing", "done", "rolled back"


@dataclass(frozen=True)
class Branch:
    """A branch to write to: `parent` is the commit that the new one is built on, `old` where the branch stands (None: there is none)."""

    name: str
    parent: str
    old: str | None

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.name}"


def find(sandbox: Sandbox, name: str) -> Branch:
    """The branch `name` as it stands. Raises `UsageError` for a name that git refuses and a project without a commit, and `Rejected`
    where the branch is checked out or does not hold what is."""
    if sandbox.head is None:
        raise UsageError("the project has no commit that a branch could start from", "commit once, or leave --branch away")
    git = Git(sandbox.repository)
    if name.startswith("-") or git.attempt("check-ref-format", f"refs/heads/{name}")[0]:
        raise UsageError(f"{name!r} is no name for a branch", "see git help check-ref-format")
    head = git.text("rev-parse", "--verify", "HEAD^{commit}")
    code, out, _ = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{name}^{{commit}}")
    old = out.decode().strip() if code == 0 else None
    _refuse_checked_out(git, name)
    if old and git.attempt("merge-base", "--is-ancestor", head, old)[0]:
        mend = f"name another branch, or bring that one up to date: git switch {name} && git merge --ff-only {head[:10]}"
        raise Rejected(f"branch {name} exists and does not build on the commit that is checked out", mend)
    if old is None and git.run("for-each-ref", "--count=1", f"refs/heads/{name}/"):
        raise UsageError(f"there are branches beneath {name}/", "name another branch")
    return Branch(name, old or head, old)


def content(git: Git, commit: str, path: str) -> Content | None:
    """A file of a commit; `path` is relative to the repository. Raises `UsageError` for a folder or a submodule."""
    line = git.run("--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", path).split(b"\0")[0]
    if not line:
        return None
    mode, kind, oid = line.split(b"\t", 1)[0].decode().split()
    if kind != "blob":
        raise UsageError(f"{path} is no regular file in {commit[:10]}", "leave --branch away")
    return Content(mode, git.run("cat-file", "blob", oid))


def write(folder: Path, sandbox: Sandbox, branch: Branch, changes: Sequence[Change], message: str) -> str:
    """Commit `changes` and move the branch; the commit. It stands once `finish` was called. `folder` is that of the record."""
    git = Git(sandbox.repository)
    made = _commit(git, sandbox, branch, changes, message)
    folder.mkdir(parents=True, exist_ok=True)
    state = {**asdict(branch), "repository": sandbox.repository, "new": made, "state": WRITING}
    _save(folder, state)
    _move(git, state, made, branch.old)
    return made


def finish(folder: Path) -> None:
    """From here on, what was written stands."""
    _save(folder, {**_load(folder), "state": DONE})


def state_of(folder: Path) -> str:
    """Whether the commit stands (DONE), was taken back (BACK) or was cut off (WRITING); empty before it began."""
    return _load(folder)["state"] if (folder / RECORD).exists() else ""


def undo(folder: Path) -> None:
    """Put the branch back to where it stood. Raises `UsageError` when it moved since, or is checked out; nothing is changed then."""
    state = _load(folder)
    git = Git(state["repository"])
    now = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{state['name']}")[1].decode().strip()
    if now != state["new"]:
        raise UsageError(
            f"branch {state['name']} moved since the write-back", f"take the commit back by hand: git revert {state['new'][:10]}"
        )
    _refuse_checked_out(git, state["name"])
    _save(folder, {**state, "state": WRITING})
    roll_back(folder)


def roll_back(folder: Path) -> tuple[str, ...]:
    """Put the branch back unless the owner moved it since; returns its name then."""
    state = _load(folder)
    git = Git(state["repository"])
    _clear_locks(git, folder, state["name"])
    now = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{state['name']}")[1].decode().strip() or None
    left: tuple[str, ...] = ()
    if now == state["new"]:
        _move(git, state, state["old"], state["new"])
    elif now != state["old"]:
        left = (f"branch {state['name']}",)
    _save(folder, {**state, "state": BACK})
    return left


def _commit(git: Git, sandbox: Sandbox, branch: Branch, changes: Sequence[Change], message: str) -> str:
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="index-") as scratch:
        own = replace(git, index=os.path.join(scratch, "index"))
        own.run("read-tree", branch.parent)
        empty = "0" * len(branch.parent)
        gone = [f"0 {empty}\t".encode() + _name(sandbox, change) for change in changes if change.after is None]
        made = []
        for change in changes:
            if change.after:
                oid = own.text("hash-object", "-w", "--no-filters", "--stdin", stdin=change.after.data)
                made.append(f"{change.after.kind} {oid}\t".encode() + _name(sandbox, change))
        own.run("update-index", "-z", "--index-info", stdin=b"".join(line + b"\0" for line in (*gone, *made)))
        tree = own.text("write-tree")
    return git.text("commit-tree", tree, "-p", branch.parent, stdin=message.encode("utf-8", "surrogateescape"))


def _name(sandbox: Sandbox, change: Change) -> bytes:
    return os.fsencode(os.path.join(sandbox.prefix, change.path))


def _move(git: Git, state: dict, to: str | None, expected: str | None) -> None:
    """Move the branch from `expected` to `to`; None: it is not there."""
    ref, none = f"refs/heads/{state['name']}", "0" * len(state["new"])
    words = ["-d", ref, expected or none] if to is None else [ref, to, expected or none]
    git.run("update-ref", "-m", "trainflash writeback", "--no-deref", *words)


def _clear_locks(git: Git, folder: Path, name: str) -> None:
    """Remove locks that a git which was killed while it moved the branch left; older ones are others'."""
    since = (folder / RECORD).stat().st_mtime_ns
    common = Path(git.folder, os.fsdecode(git.run("rev-parse", "--git-common-dir")).removesuffix("\n"))
    for lock in (common / "refs" / "heads" / f"{name}.lock", common / "packed-refs.lock"):
        try:
            if lock.stat().st_mtime_ns >= since:
                lock.unlink()
        except FileNotFoundError:
            continue


def _refuse_checked_out(git: Git, name: str) -> None:
    for line in git.run("worktree", "list", "--porcelain").splitlines():
        if line == b"branch refs/heads/" + os.fsencode(name):
            raise Rejected(
                f"branch {name} is checked out", "switch to another one first, or leave --branch away to change the working tree"
            )


def _save(folder: Path, state: dict) -> None:
    write_atomically(folder / RECORD, json.dumps(state))


def _load(folder: Path) -> dict:
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as bad:
        raise UsageError(f"{folder / RECORD}: {bad}", "the record is damaged; take the branch back by hand") from None
