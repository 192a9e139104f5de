"""Verbs whose program runs as a Slurm job: the job types the command line's form of the verb, and its document is the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from trainflash import config
from trainflash.errors import TrainFlashError, UsageError
from trainflash.mcp_server.verbs.arguments import Call, seconds

On = Annotated[
    Literal["here", "slurm"] | None,
    "Where the program runs: here, or as a Slurm job that this call waits for. Default: `on` in trainflash.toml.",
]
Slurm = Annotated[
    dict[str, str] | None,
    "With on=slurm: partition, constraint, time and wait (such as 2h), and other options of sbatch by their long names, "
    'such as {"nodes": "2"}; "" for one without a value.',
]
Place = tuple[Path, Path | None]  # a project, and the sandbox to be used; None: the one that the command line takes
_LONGEST_LINE = 300  # of a job's progress


def place_of(session: Any) -> Place:
    """Where a session works."""
    return Path(session.sandbox.project), session.directory


def in_a_job(
    call: Call,
    on: str | None,
    slurm: Mapping[str, str] | None,
    settings: config.Settings,
    verb: Sequence[str],
    given: Mapping[str, Any],
    command: Sequence[str],
    place: Place,
) -> dict[str, Any] | None:
    """What the job answers that does `verb` at `place`; None where it is to be done here.

    `given` are options of the command line by name; None and False stand for those that were not given, a list for one that is repeated.
    """
    if (on or settings.on) != "slurm":
        if slurm:
            raise UsageError("slurm says how a job is submitted", "give on=slurm too")
        return None
    from trainflash.workflow import submitting

    project, sandbox = place
    words = [*verb, "--json", *([f"--sandbox={sandbox}"] if sandbox is not None else [])]
    for name, value in given.items():
        words += _option(name, value)
    behind = ("--", *command) if command else ()
    came = submitting.submit_and_wait(
        submitting.Typed(tuple(words), behind, *config.IN_A_JOB),
        settings.slurm,
        _asked(slurm or {}) | {"budget_s": seconds(given.get("--budget"))},
        cwd=project,
        sandbox=sandbox,
        environment={},
        relay=lambda text: [_say(call, line) for line in text.splitlines()],
        say=lambda line: _say(call, line),
    )
    try:
        return json.loads(came.answer)
    except ValueError:
        raise TrainFlashError(f"the job ended with exit code {came.code} and without an answer", "ask again") from None


def _option(name: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    return [name] if value is True else [f"{name}={each}" for each in (value if isinstance(value, list) else [value])]


def _asked(slurm: Mapping[str, str]) -> dict[str, Any]:
    left = dict(slurm)
    named = {name: left.pop(name, None) or None for name in ("partition", "constraint")}
    times = {f"{name}_s": seconds(left.pop(name, None) or None) for name in ("time", "wait")}
    return {**named, **times, "options": [f"{name}={value}" if value else name for name, value in left.items()]}


def _say(call: Call, line: str) -> None:
    if line.strip():
        call.on_progress(line.strip()[:_LONGEST_LINE], 0, 0)
