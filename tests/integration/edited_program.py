"""A program of one script in a sandbox, and the judgement of an edited one against it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trainflash import fidelity, sandbox
from trainflash.schema import Command, Fidelity, Sandbox

COMMAND = Command((sys.executable, "train.py"))


def sandbox_of(base: Path, program: str) -> Sandbox:
    """A sandbox below `base` of a project with the script `program` alone."""
    project = base / "project"
    project.mkdir()
    (project / "train.py").write_text(program)
    os.environ["OMP_NUM_THREADS"] = "1"
    return sandbox.create(project, base / "sandbox")


def judged(made: Sandbox, program: str, runs: Path, *edits: tuple[str, str], **options) -> Fidelity:
    """`program` with each text of `edits` exchanged, against what the sandbox was made of, whose record is kept."""
    for old, new in edits:
        assert old in program
        program = program.replace(old, new)
    (sandbox.project_in(made, "candidate") / "train.py").write_text(program)
    return fidelity.check(made, COMMAND, COMMAND, runs, baseline_record=Path(made.directory) / "kept", **options)
