"""A typed command run elsewhere: asked for with `--on slurm`, done by a job that types it again on its allocation."""

from __future__ import annotations

import shutil
import signal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainflash import sandbox as sandboxes
from trainflash.errors import Inconclusive
from trainflash.launch import slurm
from trainflash.launch.slurm.job import ANSWER, TypedCommand

Say = Callable[[str], None]


@dataclass(frozen=True)
class Typed:
    """Our own words and, behind `--`, the owner's; `first` and `again` say to a job that it is where the command shall run."""

    words: tuple[str, ...]
    owners: tuple[str, ...]
    first: tuple[str, ...]
    again: tuple[str, ...]


@dataclass(frozen=True)
class Came:
    """What a job's command ended with: its exit code, and what it printed on stdout."""

    code: int
    answer: str


def submit_and_wait(
    typed: Typed,
    settings: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    cwd: Path,
    sandbox: Path | None,
    environment: Mapping[str, str],
    relay: Say,
    say: Say,
) -> Came:
    """Submit the command, wait for it, and give back what it came to. `given`: the options over the settings' `[slurm]`.

    The job is cancelled on every way out but its own end. Raises `UsageError` where Slurm, submitit or the package on a node is missing,
    or Slurm refuses; `Inconclusive` where the job did not start in time, or was ended from outside.
    """
    wanted = slurm.wanted(settings, **given)
    slurm.require_slurm()
    place = sandbox.absolute() / "jobs" if sandbox is not None else sandboxes.state_folder() / "jobs"
    folder = place / uuid.uuid4().hex[:12]
    folder.mkdir(parents=True, mode=0o700)
    try:
        node = slurm.ask_a_node(wanted, [cwd, folder])
        say(f"node {node} has trainflash and sees the project" if node else "no node was free to be asked whether it has trainflash")
        command = TypedCommand(typed.words, typed.owners, str(cwd), str(folder), typed.first, typed.again, dict(environment))
        job_id = slurm.submit([command], wanted, folder, f"trainflash {typed.words[0]}").job_ids[0]
        say(f"job {job_id} is submitted; Ctrl-C cancels it")
        ended = False
        signal.signal(signal.SIGTERM, _interrupted)  # as Ctrl-C; a lost terminal (SIGHUP) leaves the job to its end
        try:
            code = slurm.watch(job_id, folder, wanted, relay, say)
            ended = True
        finally:
            if not ended:
                slurm.cancel(job_id)
        answer = (folder / ANSWER).read_text(encoding="utf-8", errors="replace")
    except Inconclusive:  # what the job said may tell why; the command as it was typed may hold secrets
        for path in folder.glob("*.pkl"):
            path.unlink(missing_ok=True)
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return Came(code, answer)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def available() -> tuple[bool, bool]:
    """Whether Slurm's commands are on PATH, and whether submitit is installed."""
    from importlib.util import find_spec

    return shutil.which("sbatch") is not None, find_spec("submitit") is not None
