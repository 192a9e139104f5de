"""Commands whose processes a daemon starts: `srun` asks slurmd, `mpirun` over several machines asks a daemon on each.

Such processes are no descendants of ours. They never enter a mount view, cannot be frozen with their tree, and see the project on
its own path: so they are given a copy to run in instead, and what they take is not counted as the tree's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainflash.launch.supervise import CLIENTS
from trainflash.schema import Command, Sandbox, Side, notices

_SLURM = "srun"
_MPI = CLIENTS - {_SLURM}
_MACHINES = frozenset({"-H", "-host", "--host", "-hosts", "--hosts", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"})
_PROGRAMS = re.compile(r"(python[\d.]*|torchrun|accelerate|deepspeed)$")  # what comes behind is the program's
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_IN_A_SCRIPT = re.compile(r"(?:^|[\s;&|(`])srun(?:\s|$)", re.MULTILINE)
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_LARGEST_SCRIPT = 100_000  # bytes
_LEARNT = "daemons.jsonl"  # in the sandbox: commands whose own code asks a daemon, which only a run has shown


def of(sandbox: Sandbox, side: Side, command: Command) -> str:
    """The same for a command that runs in one checkout of a sandbox; also where an earlier run has shown it."""
    return asked(command.argv, Path(sandbox.checkout(side), sandbox.prefix, command.cwd)) or _learnt(sandbox).get(_digest(command), "")


def learn(sandbox: Sandbox, command: Command, run_dir: Path) -> str:
    """After a run: the word with which the program itself asked a daemon, as its view has told; kept for the runs to come."""
    told = (_fields(line).get("outside") for line in _lines(run_dir / "notice.jsonl"))
    word = next((str(each) for each in told if each in {_SLURM, *_MPI}), "")
    if word and _digest(command) not in _learnt(sandbox):
        with Path(sandbox.directory, _LEARNT).open("a", encoding="utf-8") as out:
            out.write(json.dumps({"command": _digest(command), "word": word}) + "\n")
    return word


def refused(run_dir: Path) -> tuple[str, str]:
    """What a view refused to start, and the mend; empty where it refused nothing."""
    told = (str(_fields(line).get("notice")) for line in _lines(run_dir / "notice.jsonl") if "outside" in _fields(line))
    return notices.refused(told)


def hand_on(sandbox: Sandbox, other: Sandbox) -> None:
    """What was learnt in `sandbox` holds in `other` too."""
    if lines := _lines(Path(sandbox.directory, _LEARNT)):
        Path(other.directory, _LEARNT).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _learnt(sandbox: Sandbox) -> dict[str, str]:
    known = (_fields(line) for line in _lines(Path(sandbox.directory, _LEARNT)))
    return {str(each["command"]): str(each["word"]) for each in known if {"command", "word"} <= each.keys()}


def _digest(command: Command) -> str:
    return hashlib.sha256(json.dumps([command.cwd, *command.argv]).encode()).hexdigest()[:16]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _fields(line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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
