"""The sandbox's own history: what is in the checkouts, how they differ, and how a change gets in."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.sandbox import manifest
from trainflash.sandbox.checkout import write_checkout
from trainflash.sandbox.git import Git, TreeEntry
from trainflash.sandbox.lifecycle import ORIGINAL, original, origins, repository_of, watched
from trainflash.sandbox.registration import clear_locks, ref_of
from trainflash.sandbox.snapshot import commit, take
from trainflash.schema import Sandbox, Side

_OUTRIGHT = re.compile(r"^--- (\S.*)\n\+\+\+ (\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Status:
    """`drift`: what changed in the original since `create`; `commits`: (sha, subject) of worktree/ above `base_ref`, newest first."""

    sandbox: Sandbox
    head: str
    dirty: tuple[str, ...]  # paths in worktree/ that are in no commit yet
    commits: tuple[tuple[str, str], ...]
    drift: tuple[str, ...]


def project_in(sandbox: Sandbox, side: Side) -> Path:
    """The project's folder inside the checkout of `side`."""
    return Path(sandbox.checkout(side), sandbox.prefix)


def head(sandbox: Sandbox) -> str:
    """The commit that worktree/ stands on."""
    return repository_of(sandbox, sandbox.worktree).text("rev-parse", "HEAD")


def dirty(sandbox: Sandbox) -> tuple[str, ...]:
    """Paths in worktree/ that are in no commit yet. Stores the worktree's content as objects; changes nothing else."""
    git = repository_of(sandbox, sandbox.worktree)
    return _changed(git, git.text("rev-parse", "HEAD"), take(git, Path(sandbox.directory)).tree)


def content(sandbox: Sandbox, side: Side) -> str:
    """The git tree of what lies in a checkout now, committed or not; equal for equal contents."""
    return take(repository_of(sandbox, sandbox.checkout(side)), Path(sandbox.directory)).tree


def drifted(sandbox: Sandbox) -> tuple[str, ...]:
    """Paths of the original whose content is no longer what the sandbox was made from; ignored files and bytecode are not looked at."""
    repository = original(sandbox)
    if repository is None:
        return ()
    changed = _changed(repository, sandbox.base_ref, take(repository, Path(sandbox.directory)).tree)
    return tuple(path for path in changed if "__pycache__" not in Path(path).parts)


def status(sandbox: Sandbox) -> Status:
    """How the sandbox stands now. Stores the worktree's content as objects; changes nothing else."""
    git = repository_of(sandbox, sandbox.worktree)
    at = git.text("rev-parse", "HEAD")
    lines = git.text("log", "--no-show-signature", "--format=%H %s", f"{sandbox.base_ref}..{at}").splitlines()
    return Status(
        sandbox,
        at,
        dirty(sandbox),
        tuple((line[: line.index(" ")], line[line.index(" ") + 1 :]) for line in lines),
        original_changes(sandbox),
    )


def original_changes(sandbox: Sandbox) -> tuple[str, ...]:
    """What changed in the original since `create`, by stat, ignored files included; one line each (see `manifest.changes`)."""
    git_dirs, index = watched(sandbox)
    return manifest.changes(manifest.read(Path(sandbox.directory, ORIGINAL)), Path(sandbox.repository), git_dirs=git_dirs, index=index)


def diff(sandbox: Sandbox, ref_from: str | None = None, ref_to: str | None = None) -> str:
    """Unified diff with paths relative to the project; default: the owner's state against worktree/ as it lies there.

    Bytes that are not UTF-8 are kept as surrogates. Raises `UsageError` for an unknown commit.
    """
    git = repository_of(sandbox, sandbox.worktree)
    target = ref_to or take(git, Path(sandbox.directory)).tree
    relative = [f"--relative={sandbox.prefix}/"] if sandbox.prefix else []
    arguments = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--binary", "--full-index", "-p", "-r")
    out = git.run("diff-tree", *arguments, *relative, ref_from or sandbox.base_ref, target)
    return out.decode("utf-8", "surrogateescape")


def changed_files(sandbox: Sandbox, ref_from: str, ref_to: str) -> tuple[str, ...]:
    """Files that differ between two commits, relative to the project."""
    paths = _changed(repository_of(sandbox, sandbox.worktree), ref_from, ref_to)
    return tuple(sorted(os.path.relpath(path, sandbox.prefix or ".") for path in paths))


def checkout(sandbox: Sandbox, side: Side, commit: str) -> None:
    """Make a checkout hold exactly a commit of the sandbox's history; what was not committed there is lost.

    Raises `UsageError` for a commit that does not descend from the owner's state.
    """
    git = _writable(sandbox, side)
    code, out, _ = git.attempt("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    sha = out.decode().strip()
    if code or git.attempt("merge-base", "--is-ancestor", sandbox.base_ref, sha)[0]:
        raise UsageError(f"{commit} is no commit of this sandbox", "see trainflash sandbox status for its commits")
    _move(sandbox, git, sha)


def commit_diff(sandbox: Sandbox, diff: str, message: str) -> str:
    """Apply a unified diff (a/ and b/ prefixes, paths relative to the project or the repository) to worktree/ and commit it: whole or not.

    Raises `UsageError` when the diff is empty, does not apply, reaches outside the project or into .git, makes a link that leads
    out of the project, or worktree/ has changes that no commit holds.
    """
    if not diff.strip():
        raise UsageError("the diff is empty", "change at least one line")
    _refuse_absolute(diff)
    git = _writable(sandbox, "candidate")
    at = git.text("rev-parse", "HEAD")
    _refuse_dirty(sandbox, dirty(sandbox))
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="index-") as folder:
        own = git.with_index(Path(folder, "index"))
        own.run("read-tree", at)
        text = (diff if diff.endswith("\n") else diff + "\n").encode("utf-8", "surrogateescape")
        where = [f"--directory={sandbox.prefix}"] if sandbox.prefix else []
        code, _, said = own.attempt("apply", "--cached", "-p1", *where, "-", stdin=text)
        if code and where and not own.attempt("apply", "--cached", "-p1", "-", stdin=text)[0]:  # as `git diff` names files in a subfolder
            code = 0
        if code:
            reason = said.strip().splitlines() or ["git apply refuses it"]
            raise UsageError(f"the diff does not apply: {reason[0].removeprefix('error: ')}", _mend(reason[0]))
        tree = own.text("write-tree")
    return _commit(sandbox, git, at, tree, message)


def _mend(complaint: str) -> str:
    """What to do about git's reason for refusing a diff."""
    if "corrupt patch" in complaint:
        return "its line counts are wrong: let `diff -u` or `git diff` write it, not a hand"
    if "filename" in complaint:
        return "name each file as `--- a/FILE` and `+++ b/FILE`, relative to the project"
    if "does not exist" in complaint or "No such file" in complaint:
        return "name files relative to the project, after a/ and b/"
    return "make it against the worktree of the sandbox"


def commit_nothing(sandbox: Sandbox, message: str) -> str:
    """A commit of its own that leaves all files as they are, for an experiment that changes the command alone."""
    git = _writable(sandbox, "candidate")
    at = git.text("rev-parse", "HEAD")
    _refuse_dirty(sandbox, dirty(sandbox))
    made = commit(git, git.text("rev-parse", f"{at}^{{tree}}"), [at], message, ref_of(sandbox.directory))
    _move(sandbox, git, made)
    return made


def commit_worktree(sandbox: Sandbox, message: str) -> str:
    """Commit what lies in worktree/ now. Raises `UsageError` when nothing changed, or something outside the project did."""
    git = _writable(sandbox, "candidate")
    return _commit(sandbox, git, git.text("rev-parse", "HEAD"), take(git, Path(sandbox.directory)).tree, message)


def _writable(sandbox: Sandbox, side: Side) -> Git:
    """Git of a checkout for a command that writes, of which there is one at a time (see `Session.locked`)."""
    git = repository_of(sandbox, sandbox.checkout(side))
    clear_locks(git, sandbox.directory)
    return git


def _commit(sandbox: Sandbox, git: Git, parent: str, tree: str, message: str) -> str:
    changed = _changed(git, parent, tree)
    if not changed:
        raise UsageError("the change is empty: the worktree would stay as it is", "change at least one line")
    entries = git.tree(tree)
    for path in changed:
        _refuse_escape(sandbox, path)
        if path in entries and entries[path].mode == "120000":
            _refuse_link(sandbox, git, path, entries[path])
    made = commit(git, tree, [parent], message, ref_of(sandbox.directory))
    _move(sandbox, git, made)
    return made


def _move(sandbox: Sandbox, git: Git, sha: str) -> None:
    write_checkout(git, sha, Path(git.work_tree), origins(sandbox, git))
    git.run("update-ref", "--no-deref", "HEAD", sha)
    git.run("read-tree", sha)


def _changed(git: Git, old: str, new: str) -> tuple[str, ...]:
    out = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
    return tuple(os.fsdecode(path) for path in out.split(b"\0")[:-1])


def _refuse_dirty(sandbox: Sandbox, edited: tuple[str, ...]) -> None:
    if edited:
        raise UsageError(
            f"{sandbox.worktree} has changes in no commit: {edited[0]}" + (f" and {len(edited) - 1} more" if len(edited) > 1 else ""),
            "commit them as an experiment, or restore the files",
        )


def _refuse_absolute(diff: str) -> None:
    for pair in _OUTRIGHT.findall(diff):
        for name in pair:
            path = name.split("\t")[0].strip('"')
            if path.startswith("/") and path != "/dev/null":
                raise UsageError(f"the diff names {path}, an absolute path", "use paths relative to the project, after a/ and b/")


def _refuse_escape(sandbox: Sandbox, path: str) -> None:
    inside = not sandbox.prefix or path.startswith(sandbox.prefix + "/")
    if not inside or ".git" in (part.lower() for part in Path(path).parts):
        raise UsageError(f"{path} lies outside the project {sandbox.prefix or '.'}", "change only files of the project")


def _refuse_link(sandbox: Sandbox, git: Git, path: str, entry: TreeEntry) -> None:
    target = os.fsdecode(next(content for _, content in git.blobs([entry])))
    led = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or led.startswith("..") or (sandbox.prefix and not led.startswith(sandbox.prefix)):
        raise UsageError(f"{path} would be a link out of the project, to {target}", "link only to files of the project")
