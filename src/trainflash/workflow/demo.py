"""A bundled, slow but ordinary training program in a fresh git repository, for a first look at the whole loop."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from trainflash import resources
from trainflash.errors import TrainFlashError

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
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "The training program as it was written"]):
        identity = ["-c", "user.name=TrainFlash demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=project, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TrainFlashError(f"git {arguments[0]}: {done.stderr.strip().splitlines()[-1]}", "install git 2.30 or newer")
    return project


def _state_home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
