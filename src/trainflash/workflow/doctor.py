"""What works on this machine, tried for real where trying is cheap, and the mend for what does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from trainflash import git_runner, sandbox, telemetry, view
from trainflash.errors import TrainFlashError, UsageError
from trainflash.launch import environment
from trainflash.live import permission, stacks
from trainflash.schema.health import Check, Health

LEAST_GIT = (2, 30)  # worktree add --lock --no-checkout together, and GIT_CONFIG_COUNT in views (2.31 reads it, older ignore it)
LEAST_TORCH, BELOW_TORCH = (2, 4), (3, 0)  # what the probe is tested with
LEAST_DISK_BYTES = 2 << 30  # checkouts, layers and a few hundred runs of small programs
LEAST_SHM_BYTES = 256 << 20  # a container's default of 64 MiB ends DataLoader workers with "bus error"
BUSY = 0.2  # share of time in which some task waits for a core; above it a verdict needs noticeably more starts
SECONDS = 30  # any one trial

Progress = Callable[[str, int, int], None]

_TORCH = """
import sys
from importlib.metadata import version, PackageNotFoundError
try:
    torch = version("torch")
except PackageNotFoundError:
    torch = ""
print("%d.%d.%d|%s|%s" % (*sys.version_info[:3], torch, "trainflash_probe.imports" in sys.modules or any(
    getattr(finder, "__name__", "").startswith("_Until") for finder in sys.meta_path)))
"""


def examine(project: Path, on_progress: Progress | None = None) -> Health:
    """All checks. `project` is only asked which disk it lies on; what is tried is tried on a project made for it."""
    checks = (
        _interpreter,
        _program,
        _git,
        lambda: _disk(project),
        _protection,
        _stacks,
        _clock,
        _cores,
        _shared_memory,
        _devices,
        _cluster,
        _extras,
    )
    found = []
    for number, check in enumerate(checks):
        if on_progress:
            on_progress("examining", number, len(checks))
        found.append(check())
    if on_progress:
        on_progress("examining", len(checks), len(checks))
    return Health(tuple(found))


def _interpreter() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.platform != "linux":
        return Check(
            "platform", "limited", f"{sys.platform}, Python {version}", "Linux has everything; elsewhere diagnose and profile only"
        )
    return Check("platform", "ok", f"Linux, Python {version} at {sys.executable}", needed=True)


def _program() -> Check:
    """The `python` that a command would start, and whether the probe gets into it."""
    python = shutil.which("python") or shutil.which("python3")
    name = "training environment"
    mend = "activate the environment that you train in, or name its python in the command: diagnose -- /path/to/python train.py"
    if python is None:
        return Check(name, "limited", "no python on PATH", mend)
    variables = {**os.environ, "PYTHONPATH": str(environment.PROBE_DIR), "TRAINFLASH_RUN": os.devnull}
    said = _run([python, "-c", _TORCH], variables)
    if said is None or said.count("|") != 2:
        return Check(name, "limited", f"{python} does not start", mend)
    version, torch, entered = said.strip().split("|")
    where = f"{python} (Python {version})"
    if entered != "True":
        return Check(
            name,
            "limited",
            f"{where}: PYTHONPATH does not reach it",
            "name the interpreter itself in the command: -I, -E or a wrapper that clears PYTHONPATH keeps the probe out",
        )
    if not torch:
        return Check(name, "limited", f"{where} has no torch", mend)
    release = tuple(int(part) for part in re.findall(r"\d+", torch)[:2])
    if not LEAST_TORCH <= release < BELOW_TORCH:
        return Check(name, "limited", f"{where} has torch {torch}", "tested with torch 2.4 up to, not with, 3.0")
    return Check(name, "ok", f"{where}, torch {torch}; the probe gets in")


def _git() -> Check:
    try:
        said = git_runner.execute(["--version"], Path.cwd(), timeout_s=SECONDS).out.decode()
    except (UsageError, subprocess.TimeoutExpired):
        said = ""
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if not version:
        return Check("git", "missing", "not found", "install git 2.30 or newer", needed=True)
    state, mend = ("ok", "") if version >= LEAST_GIT else ("missing", "install git 2.30 or newer")
    return Check("git", state, said.strip().removeprefix("git version "), mend, needed=True)


def _disk(project: Path) -> Check:
    folder = sandbox.state_folder()
    free = telemetry.disk_free_bytes(folder)
    if free is None:
        return Check("disk for sandboxes", "limited", f"{folder} cannot be looked at", "name another place: sandbox create --base DIR")
    found = f"{free / 1e9:.1f} GB free at {folder}"
    if free < LEAST_DISK_BYTES:
        return Check("disk for sandboxes", "limited", found, "make room, or name another place: sandbox create --base DIR")
    return Check("disk for sandboxes", "ok", found)


def _protection() -> Check:
    """A sandbox of a small project is made where real ones lie, and a write is tried from within."""
    name = "protection of the original"
    mend = "works all the same; for the mount view allow user namespaces (kernel.apparmor_restrict_unprivileged_userns=0), or run as root"
    try:
        place = sandbox.state_folder()
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=place) as base, tempfile.TemporaryDirectory(prefix="doctor-") as folder:
            Path(folder, "train.py").write_text("print('hello')\n")
            made = sandbox.create(Path(folder), Path(base), protect=view.protection)
            try:
                kind, reason = made.protection, made.protection_reason
            finally:
                sandbox.discard(made, everything=True)
    except (OSError, TrainFlashError) as bad:
        return Check(name, "missing", f"no sandbox can be made: {bad}", getattr(bad, "mend", "") or "give access there", needed=True)
    if kind == "mount":
        return Check(name, "ok", f"mount view: {reason}", needed=True)
    return Check(name, "limited", f"{kind}: {reason}", mend, needed=True)


def _stacks() -> Check:
    """`diagnose --pid` reads the stacks of another process of this user: tried on one that is no child of py-spy."""
    name = "stacks of running programs"
    spy = stacks.find_spy()
    if spy is None:
        return Check(name, "limited", "py-spy was not found", permission.no_spy().mend)
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            stacks.look(spy, other.pid)
        except stacks.Refused as bad:
            lack = permission.refused(other.pid, str(bad))
            return Check(name, "limited", lack.why, lack.mend.replace(str(other.pid), "PID"))
        finally:
            other.kill()
    return Check(name, "ok", "py-spy reads them: diagnose --pid works")


def _clock() -> Check:
    """The kernel's count of the time without a core, which keeps other load out of a comparison."""
    path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
    try:
        with open(path) as file:
            before = file.read().split()
            end = time.thread_time() + 0.01
            while time.thread_time() < end:
                pass
            file.seek(0)
            after = file.read().split()
        moves = int(after[0]) > int(before[0])
    except (OSError, ValueError, IndexError):
        moves = False
    if moves:
        return Check("clock of comparisons", "ok", "time without a core is counted, and left out")
    return Check("clock of comparisons", "limited", "the kernel does not count time without a core: wall time, so more starts are needed")


def _cores() -> Check:
    cores, waiting = telemetry.cpu_budget(), telemetry.pressure_cpu()
    found = f"{cores:g} for this process" if cores is not None else "unknown"
    if waiting is not None:
        found += f"; some task waited for one {waiting:.0%} of the last 10 s"
        if waiting > BUSY:
            return Check("cores", "limited", found, "verdicts hold on a busy machine but take longer; a quieter one is quicker")
    return Check("cores", "ok", found)


def _shared_memory() -> Check:
    try:
        size = shutil.disk_usage("/dev/shm").total
    except OSError:
        return Check("shared memory", "limited", "no /dev/shm", "DataLoader workers need it: mount one")
    if size < LEAST_SHM_BYTES:
        return Check("shared memory", "limited", f"/dev/shm has {size >> 20} MiB", "start the container with --shm-size 1g or --ipc host")
    return Check("shared memory", "ok", f"/dev/shm has {size / 1e9:.1f} GB")


def _devices() -> Check:
    names = telemetry.gpus()
    if names:
        return Check("GPU counters", "ok", ", ".join(names))
    if shutil.which("nvidia-smi"):
        return Check(
            "GPU counters", "limited", "nvidia-smi is there, NVML answers nothing", "look at nvidia-smi; containers need --gpus all"
        )
    return Check("GPU counters", "ok", "no NVIDIA GPU: programs are judged on the CPU")


def _cluster() -> Check:
    """`--on slurm` needs Slurm's commands, an answering controller and submitit."""
    name = "Slurm"
    if shutil.which("sbatch") is None:
        return Check(name, "ok", "no: sbatch was not found, so everything runs here; --on slurm works on a login node of a cluster")
    said = _run(["sinfo", "--noheader", "--format=%R %D"])
    if said is None:
        return Check(name, "limited", "sbatch is there, but the controller does not answer", "ask for its state: scontrol ping")
    partitions = ", ".join(f"{line.split()[0]} ({line.split()[1]} nodes)" for line in said.splitlines()[:4] if len(line.split()) == 2)
    if find_spec("submitit") is None:
        return Check(name, "limited", f"yes: {partitions}, but without submitit", "pip install submitit")
    return Check(name, "ok", f"yes: {partitions}; --on slurm works where project, sandbox and this environment are shared with the nodes")


def _extras() -> Check:
    """Packages that a few commands use when they are there."""
    known = {"mcp": "the MCP server; pip install 'mcp>=2.3,<3'", "wandb": "profile publish and W&B sources", "xprof": "xprof tables"}
    there = [name for name in known if find_spec(name)]
    absent = [f"{name} ({use})" for name, use in known.items() if name not in there]
    return Check("optional packages", "ok", ", ".join([*there, *(f"without {each}" for each in absent)]))


def _run(command: list[str], variables: dict[str, str] | None = None) -> str | None:
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
