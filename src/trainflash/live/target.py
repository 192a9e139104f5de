"""Which processes a PID stands for: itself, the training below a shell script, or the ranks below a launcher."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from trainflash.errors import UsageError
from trainflash.telemetry import processes
from trainflash.telemetry.reading import HOST, number

_PYTHON = re.compile(r"^(python|pypy)[\d.]*t?d?$")
_HELPERS = ("resource_tracker", "multiprocessing.forkserver", "torch._inductor.compile_worker", "torch/_inductor/compile_worker")
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed", "torch/distributed/run.py")


@dataclass(frozen=True)
class Target:
    """What is watched: the tree below `roots`; `notes` say what was taken when that is not the PID itself."""

    pid: int
    roots: tuple[int, ...]
    notes: tuple[str, ...] = ()


def resolve(pid: int, root: Path = HOST) -> Target:
    """What to watch for `pid`. Raises `UsageError`, one line, when there is nothing to watch there."""
    if pid <= 0:
        raise UsageError(f"{pid} is no process", "give the PID of a running training, as `pgrep -af python` shows it")
    if not (root / "proc/self/stat").exists():
        raise UsageError("a live diagnosis needs Linux's /proc", "diagnose a run from its start: `trainflash diagnose -- CMD`")
    seen = processes.stat(pid, root)
    if seen is None:
        raise UsageError(f"there is no process {pid}; it may have ended", "`pgrep -af python` shows those that run")
    if seen.state in "ZX":
        raise UsageError(f"process {pid} has ended and only waits to be collected by its parent", "`pgrep -af python` shows those that run")
    owner = processes.owner(pid, root)
    if owner is not None and owner != os.geteuid() != 0:
        raise UsageError(f"process {pid} belongs to user {owner}, not to you", f"sudo trainflash diagnose --pid {pid}")
    if pid == os.getpid():
        raise UsageError(f"process {pid} is trainflash itself", "give the PID of a running training")
    tree = processes.tree([pid], root)
    pythons = [each for each in tree if is_python(each, root) and not is_helper(each, root) and each != os.getpid()]
    if pid in pythons and (uses_torch(pid, root) or not any(uses_torch(each, root) for each in pythons)):
        note = () if uses_torch(pid, root) else (f"process {pid} has not loaded torch; it is watched as any Python program",)
        return Target(pid, (pid,), note)
    candidates = [each for each in pythons if uses_torch(each, root)] or [each for each in pythons if each != pid]
    tops = [each for each in candidates if not _below(each, set(candidates) - {each}, tree)]
    if not tops:
        raise UsageError(
            f"process {pid} is not Python ({seen.name}), and no Python runs below it",
            "give the PID of a running training, as `pgrep -af python` shows it",
        )
    return _taken(pid, tops, tree, root)


def is_python(pid: int, root: Path = HOST) -> bool:
    """Whether the process runs a Python interpreter, embedded ones with a shared library too."""
    names = {PurePath(processes.executable(pid, root) or "").name, PurePath(next(iter(processes.argv(pid, root)), "")).name}
    return any(_PYTHON.match(name) for name in names) or bool(processes.maps(pid, "libpython", root))


def uses_torch(pid: int, root: Path = HOST) -> bool:
    """Whether torch's library is loaded."""
    return bool(processes.maps(pid, "libtorch", root))


def is_helper(pid: int, root: Path = HOST) -> bool:
    """Whether this is a process of multiprocessing or torch that neither trains nor loads data."""
    return any(name in word for word in processes.argv(pid, root) for name in _HELPERS)


def looks_like_launcher(pid: int, root: Path = HOST) -> bool:
    """Whether the command line is that of a launcher of ranks; for when its stack cannot be read."""
    return any(PurePath(word).name == name or word.endswith(name) for word in processes.argv(pid, root)[:4] for name in _LAUNCHERS)


def rank(pid: int, root: Path = HOST) -> int | None:
    """RANK of the environment that the process was started with."""
    try:
        words = (root / f"proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    found = next((word[5:].decode("utf-8", "replace") for word in words if word.startswith(b"RANK=")), None)
    value = number(found)
    return None if value is None else int(value)


def _below(pid: int, others: set[int], tree: dict[int, processes.Stat]) -> bool:
    parent = tree[pid].parent
    while parent in tree:
        if parent in others:
            return True
        parent = tree[parent].parent
    return False


def _taken(pid: int, tops: list[int], tree: dict[int, processes.Stat], root: Path) -> Target:
    what = tree[pid].name
    ranks = [each for each in tops if rank(each, root) is not None]
    if len(ranks) == len(tops) and len({rank(each, root) for each in tops}) == len(tops):
        if len(tops) == 1:
            return Target(pid, (tops[0],), _one(pid, what, tops[0]))
        listed = ", ".join(str(each) for each in tops)
        return Target(pid, tuple(tops), (f"process {pid} is {what}; the ranks below it are watched: {listed}",))
    busiest = max(tops, key=lambda each: tree[each].cpu_s + tree[each].children_cpu_s)
    others = [str(each) for each in tops if each != busiest]
    left = (f"other Python programs below {pid} are not watched: {', '.join(others)}",) if others else ()
    return Target(pid, (busiest,), (*_one(pid, what, busiest), *left))


def _one(pid: int, what: str, taken: int) -> tuple[str, ...]:
    return (f"process {pid} is {what}; {taken} below it is watched",)
