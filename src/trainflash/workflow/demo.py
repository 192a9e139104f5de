"""A bundled, slow but ordinary training program in a fresh git repository, for a first look at the whole loop."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trainflash import git_runner, resources

EXAMPLE = "digits_cnn"


def prepare(directory: Path | None = None) -> Path:
    """Copy the example into a new folder, commit it there, and return the folder. An existing one is never touched."""
    parent = directory or _state_home() / "trainflash" / "demo"
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while (parent / f"{EXAMPLE}-{number}").exists():
        number += 1
    project = parent / f"{EXAMPLE}-{number}"
    shutil.copytree(resources.folder("examples") / EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__", "runs", "*.pt"))
    for arguments in (
        ["init", "--quiet", "--template="],
        ["add", "--all"],
        ["commit", "--quiet", "--message", "The training program as it was written"],
    ):
        git_runner.execute(arguments, project, settings=("commit.gpgSign=false",)).or_raise(arguments[0], "install git 2.30 or newer")
    return project


def _state_home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
