"""Starts the owner's program in a view, under the probe, and ends whole process trees without leaving one process behind."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainflash.errors import ProgramFailed, UsageError
from trainflash.launch import daemons, own_updates
from trainflash.launch.absent import Absent, missing
from trainflash.launch.counting import StepCounter, steps_so_far
from trainflash.launch.environment import OFFLINE, PROBE_DIR, Recording, program_environment
from trainflash.launch.pacing import Reins
from trainflash.launch.pinning import Pins, Usage, busy, usage
from trainflash.launch.process import Identity, Kind, Process, Redact, View
from trainflash.launch.strangers import Strangers
from trainflash.redact import text as without_secrets
from trainflash.schema import Command, RunRecord, Sandbox, Side
from trainflash.view import open_view

__all__ = [
    "OFFLINE",
    "PROBE_DIR",
    "Options",
    "Pins",
    "Process",
    "Recording",
    "Reins",
    "StepCounter",
    "Usage",
    "busy",
    "daemons",
    "hand_on",
    "require_success",
    "run",
    "start",
    "start_in",
    "steps_so_far",
    "usage",
]

_KINDS: dict[str, Kind] = {"diagnose": "diagnose", "fidelity": "fidelity", "timing": "bench"}
_POLL_S = 0.2


@dataclass(frozen=True)
class Options(Recording):
    """How `start` and `run` start a program, beside what they record.

    With `pace` it waits for commands on `Process.reins` from its first boundary on. Folders in `writable` may be written through a layer
    of their own. `redact` cleans the output before it is shown or kept; None keeps it as it is. `prepare` gets the view before the
    program starts in it.
    """

    pace: bool = False
    online: bool = False
    in_place: bool = False
    writable: Sequence[str] = ()
    redact: Redact | None = without_secrets
    prepare: Callable[[View], None] | None = None


def start(sandbox: Sandbox, side: Side, command: Command, run_dir: Path, **options: Any) -> Process:
    """Start `command` on one side of the sandbox; everything that it does is recorded in `run_dir`, which is made.

    `options` are the fields of `Options`; `capture` must be given.
    Raises `UsageError` for an unknown capture and when there is no such program.
    """
    given = replace(Options(**options), updates=own_updates.told(sandbox))
    _require_program(command, (Path(sandbox.checkout(side), sandbox.prefix, command.cwd), Path(sandbox.project, command.cwd)))
    run_dir = run_dir.absolute()
    run_dir.mkdir(parents=True, exist_ok=True)
    by = daemons.of(sandbox, side, command)
    only = "manifest" if by and not given.in_place else None
    view = open_view(sandbox, side, run_dir, cwd=command.cwd, writable=given.writable, in_place=given.in_place, only=only)
    if by == "srun":
        command = replace(command, env={"SLURM_OVERLAP": "1", **command.env})  # both sides of a pair run in one allocation
    try:
        if given.prepare is not None:
            given.prepare(view)
        process = start_in(view, side, command, run_dir, given, pace=given.pace, online=given.online, redact=given.redact)
    except BaseException:
        view.close()
        raise
    process.at_end = lambda: _learn(sandbox, command, run_dir)
    return process


def _learn(sandbox: Sandbox, command: Command, run_dir: Path) -> None:
    daemons.learn(sandbox, command, run_dir)
    own_updates.learn(sandbox, run_dir)


def hand_on(sandbox: Sandbox, other: Sandbox) -> None:
    """What runs in `sandbox` have taught holds in `other` too."""
    daemons.hand_on(sandbox, other)
    own_updates.hand_on(sandbox, other)


def start_in(
    view: View,
    side: Side,
    command: Command,
    run_dir: Path,
    recording: Recording,
    *,
    pace: bool = False,
    online: bool = False,
    redact: Redact | None = without_secrets,
) -> Process:
    """Start `command` in a view that is open already; the process closes it when it is finished."""
    if recording.capture not in _KINDS:
        raise UsageError(f"there is no capture {recording.capture!r}", f"one of {', '.join(_KINDS)}")
    reins = Reins(run_dir / "pace") if pace else None
    environment = program_environment(
        os.environ,
        {**view.env, **command.env},
        project=view.project,
        run_dir=run_dir,
        recording=recording,
        pace_dir=reins.directory if reins else None,
        online=online,
    )
    try:
        identity = Identity(_kind(recording), command, side)
        return Process(view, identity, run_dir, environment, reins=reins, clean=redact)
    except BaseException:
        if reins is not None:
            reins.close()
        raise


def _kind(recording: Recording) -> Kind:
    return "ceiling" if recording.replay else "profile" if recording.profile else _KINDS[recording.capture]


def run(
    sandbox: Sandbox,
    side: Side,
    command: Command,
    run_dir: Path,
    *,
    timeout: float | None = None,
    on_step: Callable[[int], None] | None = None,
    **options: Any,
) -> RunRecord:
    """`start`, then wait until the program is over; a non-zero exit is recorded, not raised (see `require_success`).

    After `timeout` seconds the tree is ended and the status is `timed_out`. `on_step` gets the number of steps done so far whenever it
    has changed. A program that trains only where the probe could not enter is stopped; `notice.jsonl` says so. One whose
    ranks wait for others that never start is ended after some minutes.
    Any exception, Ctrl-C too, ends the tree, writes the record as `interrupted` and is raised again.
    """
    process = start(sandbox, side, command, run_dir, **options)
    deadline = None if timeout is None else time.monotonic() + timeout
    seen = 0
    strangers, absent = Strangers(process.pid, process.run_dir), Absent(process.run_dir)
    try:
        while process.wait(_POLL_S) is None:
            process.connections.look()
            if (on_step is not None or seen == 0) and (now := steps_so_far(process.run_dir)) != seen:
                seen = now
                if on_step is not None:
                    on_step(seen)
            if seen == 0 and strangers.train_alone():
                process.kill("stopped")
            if seen == 0 and absent.for_long():
                process.kill("timed_out")
            if deadline is not None and time.monotonic() > deadline:
                process.kill("timed_out")
    finally:
        record = process.finish()
    return record


def require_success(record: RunRecord, run_dir: Path | None = None) -> RunRecord:
    """`record`, when the program ended well or was stopped by us. Raises `ProgramFailed` with its last output otherwise.

    From its `run_dir` the message also says which ranks never started, and what the sandbox did not let it start.
    """
    if record.status in {"finished", "stopped"}:
        return record
    what, mend = daemons.refused(run_dir) if run_dir is not None else ("", "")
    if what:
        raise ProgramFailed(f"{' '.join(record.command.argv)}: {what}", mend, returncode=record.returncode, output=record.output_tail)
    how = {
        "timed_out": f"did not end within {record.wall_s:.0f} s",
        "interrupted": "was interrupted",
    }.get(record.status) or _how_it_ended(record.returncode)
    absent = missing(run_dir) if run_dir is not None else ""
    raise ProgramFailed(
        f"{' '.join(record.command.argv)} {how} (run {record.id}){f'; {absent}' if absent else ''}",
        "its own output is shown; make it run by hand first",
        returncode=record.returncode,
        output=record.output_tail,
    )


def _how_it_ended(returncode: int | None) -> str:
    if returncode is None:
        return "has no exit code"
    return f"was ended by signal {-returncode}" if returncode < 0 else f"ended with exit code {returncode}"


def _require_program(command: Command, folders: tuple[Path, ...]) -> None:
    """Raises `UsageError` unless the first word of the command can be run. `folders`: where a relative path may lie."""
    if not command.argv or not command.argv[0]:
        raise UsageError("there is no command to run", "put it after `--`, for example `-- python train.py`")
    name = command.argv[0]
    if os.sep in name:
        paths = [folder / name for folder in folders]  # an absolute name replaces the folder
        if any(os.access(path, os.X_OK) and path.is_file() for path in paths):
            return
        if any(path.is_file() for path in paths):
            raise UsageError(f"{name} is not executable", f"chmod +x {name}, or name its interpreter: `-- bash {name}`")
    elif shutil.which(name, path=command.env.get("PATH", os.environ.get("PATH"))):
        return
    raise UsageError(f"no such program: {name}", "check the command after `--`")
