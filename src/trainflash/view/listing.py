"""What git says about the original's files, read without touching its index."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from trainflash import git_runner
from trainflash.errors import UsageError
from trainflash.schema import Sandbox


@dataclass(frozen=True)
class Listing:
    """Paths relative to the repository: `ours` must come from the checkout alone, `theirs` from the original alone."""

    ours: frozenset[str]
    theirs: tuple[str, ...]


def read(sandbox: Sandbox) -> Listing:
    """List the original. `ours`: not ignored now, or taken at `create`. `theirs`: ignored, or left out of the sandbox.

    A folder with nothing but ignored files is one path of `theirs`, and so is a submodule.
    Raises `UsageError` where git or the sandbox's files fail.
    """
    try:
        stored = json.loads(Path(sandbox.directory, "files.json").read_text(encoding="ascii"))
        taken, left_out = frozenset(stored["taken"]), frozenset(stored["left_out"])
    except (OSError, ValueError, KeyError) as bad:
        mend = "the sandbox is damaged: trainflash sandbox discard, then create"
        raise UsageError(f"{sandbox.directory}/files.json: {bad}", mend) from None
    now = {path for path in _paths(sandbox, "-c", "-o", "--exclude-standard") if not path.endswith("/")}
    submodules = {line.split("\t", 1)[1] for line in _paths(sandbox, "-s") if line.startswith("160000 ")}
    ignored = [path.rstrip("/") for path in _paths(sandbox, "-o", "-i", "--exclude-standard", "--directory")]
    return Listing(frozenset((now | taken) - left_out - submodules), tuple(sorted({*ignored, *left_out, *submodules})))


def git_dir(sandbox: Sandbox) -> str | None:
    """The folder that the original's worktrees share; None where the project is in no repository."""
    private = _private(sandbox)
    if private:
        borrowed = Path(private, "objects", "info", "alternates")
        return os.path.dirname(os.fsdecode(borrowed.read_bytes()).removesuffix("\n")) if borrowed.exists() else None
    said = _git(sandbox, "rev-parse", "--git-common-dir")
    return os.path.realpath(os.path.join(sandbox.repository, os.fsdecode(said).removesuffix("\n")))


def own_git_dir(sandbox: Sandbox) -> str:
    """The folder with the original's own HEAD and index: that of its linked worktree where it is one."""
    private = _private(sandbox)
    return private or os.fsdecode(_git(sandbox, "rev-parse", "--absolute-git-dir")).removesuffix("\n")


def untracked(sandbox: Sandbox, copy: str) -> frozenset[str]:
    """Files of a copy of the repository's root that the original's index does not have and git does not ignore."""
    answer = git_runner.execute([f"--work-tree={copy}", "ls-files", "-z", "-o", "--exclude-standard"], copy, git_dir=own_git_dir(sandbox))
    said = answer.or_raise("ls-files", f"check the repository: git -C {sandbox.repository} status")
    return frozenset(os.fsdecode(path) for path in said.split(b"\0")[:-1])


def _private(sandbox: Sandbox) -> str | None:
    own = os.path.join(sandbox.directory, "repository.git")
    return own if os.path.isdir(own) else None


def _paths(sandbox: Sandbox, *which: str) -> list[str]:
    return [os.fsdecode(path) for path in _git(sandbox, "ls-files", "-z", *which).split(b"\0")[:-1]]


def _git(sandbox: Sandbox, *arguments: str) -> bytes:
    own = _private(sandbox)
    where = [f"--work-tree={sandbox.repository}"] if own else []
    answer = git_runner.execute([*where, *arguments], sandbox.repository, git_dir=own or "")
    return answer.or_raise(arguments[0], f"check the repository: git -C {sandbox.repository} status")
