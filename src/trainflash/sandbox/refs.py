"""Any commit of the owner's as a state that the sandbox can hold."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from trainflash.errors import UsageError
from trainflash.sandbox.git import Git, TreeEntry, discover
from trainflash.sandbox.lifecycle import ref_of, repository_of
from trainflash.sandbox.snapshot import commit, write_tree
from trainflash.schema import Sandbox

_POINTER, _POINTER_BYTES = b"version https://git-lfs.github.com/spec/", 1024  # git-lfs's docs/spec.md
Tree = dict[str, TreeEntry]


def commit_named(project: Path, ref: str) -> str:
    """The commit that `ref` names in the owner's repository: as git names it, else a branch of a remote, else what was fetched last.

    Raises `UsageError` without git, and for a name that it does not know.
    """
    repository = _repository(project)
    places = ("", "refs/remotes/origin/", *(f"refs/remotes/{remote}/" for remote in _remotes(repository)))
    shas = (_commit(repository, f"{place}{ref}") for place in places)
    sha = next(filter(None, shas), None) or _fetched(repository, ref)
    if sha is None or ref.startswith("-"):
        raise UsageError(f"git knows no commit {ref!r}", f"fetch it first: git fetch origin {ref}; a shallow clone lacks older ones")
    return sha


def parting(project: Path, sha: str) -> tuple[str, str]:
    """The commit that `sha` is to be compared with, and its name for a reader: where it left the main branch, else its first parent.

    Raises `UsageError` where it has none, or this clone lacks it.
    """
    repository, short = _repository(project), sha[:7]
    main = main_branch_of(project)
    places = [] if main is None else [place for place in (f"refs/heads/{main}", f"refs/remotes/origin/{main}") if _there(repository, place)]
    tips, name = (places, main) if places else (["HEAD"], "HEAD")
    code, out, _ = repository.attempt("merge-base", sha, *tips)
    base = out.decode().split("\n")[0]
    if not code and base and base != sha:
        return base, f"where {short} left {name}"
    if base == sha and (parent := _commit(repository, f"{sha}^")):
        return parent, f"the commit before {short}"
    mend = "name one with --baseline REF; a shallow clone lacks older ones: git fetch --unshallow"
    raise UsageError(f"git finds no commit that {short} could be compared with", mend)


def held(sandbox: Sandbox, name: str) -> str | None:
    """The commit of the sandbox's own history that has `name` as its hash, or begins with it; None: none has."""
    git = repository_of(sandbox, sandbox.worktree)
    sha = _commit(git, name) if re.fullmatch(r"[0-9a-f]{4,64}", name) else None
    ours = sha is not None and not git.attempt("merge-base", "--is-ancestor", sandbox.base_ref, sha)[0]
    return sha if ours else None


def adopt(sandbox: Sandbox, sha: str, beside: Collection[str] = ()) -> str:
    """A commit on top of the owner's state that holds what `sha` holds; files that no commit of the owner's holds stay as they are.

    `beside`: commits that it is to be compared with. A file that one of them tracks is no such file, whoever left it lying about.
    """
    git = repository_of(sandbox, sandbox.worktree)
    wanted, ours = git.tree(sha), git.tree(sandbox.base_ref)
    folders = {parent.as_posix() for path in wanted for parent in PurePosixPath(path).parents}
    loose = set(ours) - tracked(sandbox, beside) - folders
    kept = {path: ours[path] for path in loose if not any(parent.as_posix() in wanted for parent in PurePosixPath(path).parents)}
    entries = {**kept, **wanted, **_behind_pointers(git, wanted, git.tree(sandbox.head) if sandbox.head else {}, ours)}
    if entries == ours:
        return sandbox.base_ref
    tree = write_tree(git, entries, Path(sandbox.directory))
    return commit(git, tree, [sandbox.base_ref], f"what {sha} holds", ref_of(sandbox.directory))


def _behind_pointers(git: Git, wanted: Tree, head: Tree, ours: Tree) -> Tree:
    """Files for which the commit holds but a pointer (git-lfs), as they lie in the project: there it stands on the same pointer."""
    small = {path: entry for path, entry in wanted.items() if entry.size <= _POINTER_BYTES and head.get(path) == entry}
    changed = [path for path, entry in small.items() if path in ours and ours[path] != entry]
    held = dict(git.blobs([small[path] for path in changed]))
    return {path: ours[path] for path in changed if held[small[path]].startswith(_POINTER)}


def tracked(sandbox: Sandbox, commits: Collection[str]) -> frozenset[str]:
    """Paths that one of these commits of the owner's holds, or the one that the sandbox was made on."""
    git = repository_of(sandbox, sandbox.worktree)
    return frozenset(path for sha in {*commits, *([sandbox.head] if sandbox.head else [])} for path in git.tree(sha))


def tree_of(sandbox: Sandbox, commit: str) -> str:
    """The git tree of a commit; equal for equal contents, in every clone."""
    return repository_of(sandbox, sandbox.worktree).text("rev-parse", f"{commit}^{{tree}}")


def files_of(sandbox: Sandbox, commit: str) -> frozenset[str]:
    """Paths of a commit's files, relative to the project; those outside of it are left out."""
    inside = f"{sandbox.prefix}/" if sandbox.prefix else ""
    paths = repository_of(sandbox, sandbox.worktree).tree(commit)
    return frozenset(path.removeprefix(inside) for path in paths if path.startswith(inside))


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


def _commit(repository: Git, name: str) -> str | None:
    code, out, _ = repository.attempt("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return None if code else out.decode().strip()


def _remotes(repository: Git) -> list[str]:
    return sorted(repository.attempt("remote")[1].decode(errors="replace").split())


def _fetched(repository: Git, ref: str) -> str | None:
    """What `git fetch REMOTE REF` brought without a name of its own; git keeps it in FETCH_HEAD until the next fetch."""
    try:
        lines = Path(repository.git_dir, "FETCH_HEAD").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    named = (line.split("\t", 2) for line in lines if line.count("\t") >= 2)
    sha = next((sha for sha, _, what in named if re.match(rf"(branch |tag )?'(refs/)?{re.escape(ref)}' of ", what)), None)
    return _commit(repository, sha) if sha else None


def _there(repository: Git, ref: str) -> bool:
    return not repository.attempt("show-ref", "--verify", "--quiet", ref)[0]


def _repository(project: Path) -> Git:
    repository = discover(project)
    if repository is None:
        raise UsageError(f"{project} is in no git repository", "commits are compared: git init, and commit once")
    return repository
