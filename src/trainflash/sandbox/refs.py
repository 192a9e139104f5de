"""Any commit of the owner's as a state that the sandbox can hold."""

from __future__ import annotations

from pathlib import Path

from trainflash.errors import UsageError
from trainflash.sandbox.git import Git, discover
from trainflash.sandbox.lifecycle import ref_of, repository_of
from trainflash.sandbox.snapshot import commit, write_tree
from trainflash.schema import Sandbox


def commit_named(project: Path, ref: str) -> str:
    """The commit that `ref` names in the owner's repository. Raises `UsageError` without git, and for a name that it does not know."""
    repository = _repository(project)
    code, out, _ = repository.attempt("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if code or ref.startswith("-"):
        raise UsageError(f"git knows no commit {ref!r}", f"fetch it first: git fetch origin {ref}; a shallow clone lacks older ones")
    return out.decode().strip()


def adopt(sandbox: Sandbox, sha: str) -> str:
    """A commit on top of the owner's state that holds what `sha` holds; files that no commit of the owner's holds stay as they are."""
    git = repository_of(sandbox, sandbox.worktree)
    wanted, ours = git.tree(sha), git.tree(sandbox.base_ref)
    tracked = git.tree(sandbox.head) if sandbox.head else {}
    entries = {**{path: entry for path, entry in ours.items() if path not in tracked}, **wanted}
    if entries == ours:
        return sandbox.base_ref
    tree = write_tree(git, entries, Path(sandbox.directory))
    return commit(git, tree, [sandbox.base_ref], f"what {sha} holds", ref_of(sandbox.directory))


def branch_of(project: Path) -> str | None:
    """The branch that is checked out; None: none is (a detached HEAD)."""
    code, out, _ = _repository(project).attempt("symbolic-ref", "--quiet", "--short", "HEAD")
    return None if code else out.decode().strip()


def main_branch_of(project: Path) -> str | None:
    """The branch that the origin says is the main one; else `main` or `master`, where there is one. None: nobody knows."""
    repository = _repository(project)
    code, out, _ = repository.attempt("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if not code:
        return out.decode().strip().partition("/")[2]
    known = (
        name for name in ("main", "master") for place in ("refs/heads", "refs/remotes/origin") if _there(repository, f"{place}/{name}")
    )
    return next(known, None)


def text_at(project: Path, sha: str, path: str) -> str | None:
    """The content of a file of the repository at a commit; None where it is not there. `path` is relative to the project."""
    repository = _repository(project)
    place = Path(project, path)
    if not place.is_relative_to(repository.work_tree):
        return None
    code, out, _ = repository.attempt("cat-file", "blob", f"{sha}:{place.relative_to(repository.work_tree).as_posix()}")
    return None if code else out.decode("utf-8", "replace")


def _there(repository: Git, ref: str) -> bool:
    return not repository.attempt("show-ref", "--verify", "--quiet", ref)[0]


def _repository(project: Path) -> Git:
    repository = discover(project)
    if repository is None:
        raise UsageError(f"{project} is in no git repository", "the gate compares commits: git init, and commit once")
    return repository
