"""Runs that one experiment leaves for the next, and an interrupted one for its resumption.

The same commit and command in the same environment need not train again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from trainflash import git_runner, launch
from trainflash.errors import UsageError
from trainflash.fidelity import record
from trainflash.fidelity.record import Record, read
from trainflash.schema import Command, Sandbox, Side, write_document

FILE = "{}-runs.json"
# Variables that move what a training computes, or how: compute libraries, their threads, and the visible devices.
_VARIABLES = (
    "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "NUMEXPR_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", "NCCL_", "TORCH", "PYTORCH",
    "PYTHON", "TRITON_", "ATEN_", "DNNL_", "ONEDNN_", "XLA_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "LD_PRELOAD", "LD_LIBRARY_PATH",
    "WORLD_SIZE",
)  # fmt: skip
_AS_STORED = ("core.autocrlf=false", "core.attributesFile=/dev/null", "core.fileMode=true")  # as the sandbox made its checkouts
_OURS = ("PYTHONPATH", "PYTEST")  # PYTHONPATH gets the probe in front; a test runner's own


@dataclass(frozen=True)
class Kept:
    """One run: its folder's name, whether it went to the program's own end, and how long it took."""

    folder: str
    whole: bool
    wall_s: float


@dataclass(frozen=True)
class KeptRuns:
    """`baseline-runs.json` or `candidate-runs.json` in the folder that holds the runs; `key` stands for all that must be the same."""

    key: str
    updates: int | None
    runs: dict[str, Kept]


@dataclass(frozen=True)
class Run:
    """A run that is over: what it recorded, how long it took, its output, and what it wrote in the project (None: not kept)."""

    record: Record
    seconds: float
    log: Path
    outputs: Path | None


def key_of(sandbox: Sandbox, side: Side, command: Command) -> str | None:
    """A hash of what lies in the checkout of `side`, the command and all that its figures depend on; None when it is not committed.

    What was committed twice, as the same patch tried again is, trains the same.
    """
    head, dirty = (git(sandbox.checkout(side), *words) for words in (("rev-parse", "HEAD^{tree}"), ("status", "--porcelain")))
    if head.code or dirty.code or dirty.out.strip():
        return None
    known = [head.out.decode().strip(), asdict(command), environment(sandbox, command)]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def git(folder: str, *words: str) -> git_runner.Answer:
    """git in a checkout of the sandbox, whatever it ends with."""
    return git_runner.execute(words, folder, settings=_AS_STORED)


def environment(sandbox: Sandbox, command: Command) -> dict[str, str]:
    """What a training's figures depend on beside commit and command: the machine, the interpreter's packages, variables, the recorder."""
    variables = {**os.environ, **command.env}
    facts = {name: value for name, value in variables.items() if name.startswith(_VARIABLES) and not name.startswith(_OURS)}
    python = interpreter(sandbox, command)
    facts |= {"machine": platform.machine(), "node": platform.node(), "kernel": platform.release(), "interpreter": python}
    facts["cores"] = str(len(os.sched_getaffinity(0)))
    facts["packages"] = _packages(python)
    recorder = sorted(Path(launch.PROBE_DIR).rglob("*.py"))
    facts["recorder"] = hashlib.sha256(b"".join(path.read_bytes() for path in recorder)).hexdigest()
    return facts


def interpreter(sandbox: Sandbox, command: Command) -> str:
    """The Python that the command starts, as far as its first word tells: itself, or that of a script's first line."""
    first = shutil.which(command.argv[0], path=command.env.get("PATH", os.environ.get("PATH"))) or command.argv[0]
    path = Path(sandbox.project, first)
    try:
        with path.open("rb") as file:
            line = file.read(256).split(b"\n")[0]
    except OSError:
        return str(path)
    return os.fsdecode(line[2:].strip().split()[-1]) if line.startswith(b"#!") else str(path)


def _packages(python: str) -> str:
    """A hash of the names and versions of everything installed beside `python`; "" where it is no Python."""
    ask = "import sys; print(sys.version); print(*sorted(p for p in sys.path if p), sep=chr(10))"
    try:
        answer = subprocess.run([python, "-I", "-c", ask], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if answer.returncode:
        return ""
    version, *folders = answer.stdout.splitlines()
    installed = sorted(path.name for folder in folders for path in Path(folder).glob("*.dist-info"))
    return hashlib.sha256("\n".join([version, *installed]).encode()).hexdigest()


def load(directory: Path, key: str | None, updates: int | None, first: str = "baseline") -> dict[str, Run]:
    """`{name: run}` of kept runs that were made for the same question; empty when `first` is not among them."""
    path = directory / FILE.format(first)
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        known = KeptRuns(plain["key"], plain["updates"], {name: Kept(**run) for name, run in plain["runs"].items()})
    except OSError:
        return {}
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path}: cannot be read", "remove it: what it names is then recorded again") from None
    if key is None or known.key != key or known.updates != updates:
        return {}
    found = {name: _run(directory / run.folder, run) for name, run in known.runs.items()}
    return found if first in found and found[first].record.updates else {}


def whole_steps(sandbox: Sandbox, baseline: Command, place: Path) -> int | None:
    """Steps of the whole program; None where no kept run of the baseline came to its own end."""
    run = load(place, key_of(sandbox, "baseline", baseline), None).get("baseline")
    return run.record.trained[0].steps if run is not None and run.record.whole and run.record.trained else None


def evaluated_every(sandbox: Sandbox, baseline: Command, place: Path) -> int | None:
    """Updates from one evaluation of the baseline to the next, see `record.evaluated_every`; None where no run of it is kept."""
    run = load(place, key_of(sandbox, "baseline", baseline), None).get("baseline")
    return record.evaluated_every(run.record.trained[0]) if run is not None and run.record.trained else None


def _run(folder: Path, run: Kept) -> Run:
    outputs = folder / "outputs"
    return Run(read(folder, whole=run.whole), run.wall_s, folder / "output.log", outputs if outputs.is_dir() else None)


def keep(directory: Path, key: str | None, updates: int | None, runs: dict[str, Kept], first: str = "baseline") -> None:
    """Write down `runs`, next to those of the same key that are kept already."""
    if key is None or not runs:
        return
    path, before = directory / FILE.format(first), {}
    if first not in runs and path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))["runs"]
    write_document(path, KeptRuns(key, updates, {**{name: Kept(**run) for name, run in before.items()}, **runs}))
