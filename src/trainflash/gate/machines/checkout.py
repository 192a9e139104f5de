"""Which commit of the project is measured, and whether it is exactly that."""

from __future__ import annotations

import subprocess
from pathlib import Path

from trainflash import git_runner
from trainflash.errors import UsageError

_GIT_S = 60.0


def commit_of(project: Path) -> str | None:
    """The commit that `project` is at; None without git, or before the first commit."""
    said = _git(project, "rev-parse", "--verify", "--quiet", "HEAD")
    return said.strip() or None if said is not None else None


def is_dirty(project: Path) -> bool | None:
    """Whether tracked files differ from the commit, or files are there that git neither knows nor ignores; None without git."""
    said = _git(project, "status", "--porcelain", "--untracked-files=normal")
    return None if said is None else bool(said.strip())


def _git(project: Path, *words: str) -> str | None:
    try:
        answer = git_runner.execute(words, project, timeout_s=_GIT_S)
    except (UsageError, subprocess.TimeoutExpired):
        return None
    return answer.out.decode("utf-8", "replace") if answer.code == 0 else None
