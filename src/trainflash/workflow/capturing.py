"""Run the owner's program in the sandbox with torch's own profiler over a few of its steps."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainflash import launch, redact, trace
from trainflash.errors import ProgramFailed
from trainflash.schema import Command
from trainflash.workflow.session import Session

FOLDER = "profile"  # in the run's directory
GIVE_UP_S = 1800.0  # a program that has not passed the window by then is stuck


@dataclass(frozen=True)
class Window:
    """Steps to pass by, to warm the profiler up in (recorded and thrown away), and to record; and what to record beside times."""

    wait: int = 5
    warmup: int = 2
    active: int = 3
    shapes: bool = False
    memory: bool = False
    stacks: bool = False

    @property
    def steps(self) -> int:
        return self.wait + self.warmup + self.active


@dataclass(frozen=True)
class Captured:
    """`directory`: what `--profile-dir` takes; `traces`: its files, one per rank that trained; `steps` that the program did."""

    run: str
    directory: Path
    traces: tuple[Path, ...]
    steps: int
    protection: str | None


def capture(
    session: Session,
    command: Command,
    window: Window,
    *,
    in_place: bool = False,
    online: bool = False,
    writable: tuple[str, ...] = (),
    to_the_end: bool = False,
) -> Captured:
    """Record `window` of `command` in the sandbox's worktree; the program is stopped behind it, unless it is to run to its end.

    Raises `ProgramFailed` when the program fails, or ends before a step of the window was recorded.
    """
    run_dir = session.new_run("profile")
    if not in_place and not session.dirty():
        session.rest()
    label = f"profile {run_dir.name}"
    session.on_progress(label, 0, window.steps)
    record = launch.run(
        session.sandbox,
        "candidate",
        command,
        run_dir,
        capture="timing",
        max_steps=None if to_the_end else window.steps + 1,
        in_place=in_place,
        online=online,
        writable=writable,
        profile=json.dumps(asdict(window)),
        timeout=GIVE_UP_S,
        redact=redact.text,
        on_step=lambda done: session.on_progress(label, done, window.steps),
    )
    launch.require_success(record)
    if launch.steps_so_far(run_dir) == 0:
        trace.load(run_dir)  # says why there is nothing
    traces = tuple(sorted((run_dir / FOLDER).glob("*.pt.trace.json")))
    steps = launch.steps_so_far(run_dir)
    if not traces:
        said = shlex.join(redact.argv(command.argv))
        raise ProgramFailed(
            f"{said} did {steps} steps; the window begins after {window.wait + window.warmup} and none was recorded",
            "shorten it with --wait and --warmup, or let the program train longer",
            output=record.output_tail,
        )
    return Captured(run_dir.name, run_dir / FOLDER, traces, steps, record.protection)


def answer(made: Captured) -> dict[str, Any]:
    """The JSON document of `profile capture`."""
    return {
        "schema": "profile_capture.v1",
        "status": "ok",
        "run": made.run,
        "profile_dir": str(made.directory),
        "traces": [str(path) for path in made.traces],
        "steps": made.steps,
        "protection": made.protection,
    }
