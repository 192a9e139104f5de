"""Which commit of the project is measured, and whether it is exactly that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # a look must not write the owner's index
    try:
        done = subprocess.run(
            ["git", "-C", str(project), "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=_GIT_S,
            env=environment,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
