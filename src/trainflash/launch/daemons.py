"""Commands whose processes a daemon starts: `srun` asks slurmd, `mpirun` over several machines asks a daemon on each.

Such processes are no descendants of ours. They never enter a mount view, cannot be frozen with their tree, and see the project on
its own path: so they are given a copy to run in instead, and what they take is not counted as the tree's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainflash.launch.supervise import CLIENTS
from trainflash.schema import Command, Sandbox, Side

_SLURM = "srun"
_MPI = CLIENTS - {_SLURM}
_MACHINES = frozenset({"-H", "-host", "--host", "-hosts", "--hosts", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"})
_PROGRAMS = re.compile(r"(python[\d.]*|torchrun|accelerate|deepspeed)$")  # what comes behind is the program's
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_IN_A_SCRIPT = re.compile(r"(?:^|[\s;&|(`])srun(?:\s|$)", re.MULTILINE)
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_LARGEST_SCRIPT = 100_000  # bytes


def of(sandbox: Sandbox, side: Side, command: Command) -> str:
    """The same for a command that runs in one checkout of a sandbox."""
    return asked(command.argv, Path(sandbox.checkout(side), sandbox.prefix, command.cwd))


def asked(argv: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """The word of the command that has a daemon start its processes; "" where none does. `folder`: where a script named there lies."""
    environment = os.environ if environment is None else environment
    for at, word in enumerate(argv):
        name = os.path.basename(word)
        if name == _SLURM:
            return _SLURM
        if name in _MPI:
            several = environment.get("SLURM_JOB_NUM_NODES", "1") not in {"", "1"}
            return name if several or _MACHINES & set(argv[at + 1 :]) else ""
        if _PROGRAMS.match(name):
            return ""
        if _IN_A_SCRIPT.search(_COMMENT.sub("", _script(argv, at, folder))):
            return _SLURM
    return ""


def _script(argv: Sequence[str], at: int, folder: Path) -> str:
    """The shell commands that the word at `at` stands for, if any: the text behind `-c`, or a script's content."""
    if at and argv[at - 1] == "-c" and any(os.path.basename(word) in _SHELLS for word in argv[:at]):
        return argv[at]
    path = folder / argv[at]
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
            return ""
        text = path.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in text else text.decode("utf-8", "replace")
