"""What a caller typed, as the objects that the verbs take; the same for the command line and for programs."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from trainflash import author, fidelity, redact
from trainflash.config import Settings
from trainflash.errors import UsageError
from trainflash.schema import CONSENTS, Command, Location
from trainflash.workflow import session, vault
from trainflash.workflow.verifying import Demands

ROUNDING = "numerics"  # what the check of the training has found to lie within the program's own noise


def command(argv: Sequence[str], settings: Settings, project: Path | None = None, sandbox: Path | None = None) -> Command:
    """The training command, else the one in the project's settings, else the last one of the sandbox in `project`, where that is given.

    Raises `UsageError` where there is none, or a secret of the last one was not kept.
    """
    words = tuple(argv) or settings.command
    last = session.last_command(project, sandbox) if project is not None and not words else None
    if last is not None:
        if any(redact.REDACTED in word for word in last.argv):
            raise UsageError("the last command held a secret, which was not kept", "give the command again after `--`")
        return vault.require(last)
    if not words:
        raise UsageError("no training command", "put it after `--`, such as `-- python train.py`, or set `command` in trainflash.toml")
    return Command(argv=words)


def shown(command: Command) -> str:
    """The command as it may be printed: without secrets."""
    return shlex.join(redact.argv(command.argv))


def place(text: str) -> Location:
    """`FILE:LINE` in the project."""
    match = re.fullmatch(r"(.+):(\d+)", text)
    if not match:
        raise UsageError(f"{text!r} is no place in the source", "write FILE:LINE, such as train.py:42")
    return Location(match[1], int(match[2]))


def writer(
    command: str | None, minutes: float | None = None, dollars: float | None = None, attempts: int | None = None
) -> tuple[author.Author | None, author.Limits]:
    """The author that was asked for, and what it may take. Raises `UsageError` for one that there is not, and limits without one."""
    given = {"minutes": minutes, "dollars": dollars, "attempts": attempts}
    limits = author.Limits(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    if command is None and limits != author.Limits():
        raise UsageError("limits of an author without --author", f"name one of {', '.join(author.NAMES)}, or give a command line")
    return (author.named(command) if command is not None else None), limits


def as_typed(demands: Demands) -> list[str]:
    """The options that give the same agreements on a command line."""
    named = sorted(demands.allowed - {ROUNDING})
    return [*(["--allow", ",".join(named)] if named else []), *([] if ROUNDING in demands.allowed else ["--exact"])]


def demands(
    settings: Settings,
    *,
    budget_s: float | None = None,
    allow: str | None = None,
    exact: bool = False,
    tolerance: float | None = None,
    resume: bool = False,
    metric: str | None = None,
    restart: str | None = None,
    convergence: int = 0,
) -> Demands:
    """What verdicts are held to, from the options where given, else from the settings; `allow` is comma-separated.

    Rounding needs no agreement by name, unless `exact` or the settings ask for every bit. With `metric` the tolerance is that of the
    metric, and the losses keep theirs.
    """
    named = (*settings.allow, *(word.strip() for word in (allow or "").split(",") if word.strip()))
    unknown = sorted(set(named) - set(CONSENTS))
    if unknown:
        raise UsageError(f"nobody can agree to {unknown[0]!r}", f"changes that can be agreed to: {', '.join(CONSENTS)}")
    exact = exact or settings.exact
    if exact and ROUNDING in named:
        raise UsageError(f"--exact and an agreement to {ROUNDING} exclude each other", "leave one of them out; see trainflash.toml, too")
    if tolerance is not None and not 0 < tolerance < math.inf:
        raise UsageError(f"a tolerance of {tolerance} is no positive number", "give the largest mean |loss delta|, such as 1e-3")
    if metric is not None:
        fidelity.metric.parse(metric, 1.0, folder=".")  # refuse what is none before anything runs
    if convergence and convergence < fidelity.convergence.LEAST_SEEDS:
        raise UsageError(f"{convergence} seeds show nothing", f"give at least {fidelity.convergence.LEAST_SEEDS}")
    return Demands(
        metric=metric,
        metric_tolerance=tolerance or settings.tolerance,
        restart=tuple(shlex.split(restart or "")),
        convergence=convergence,
        tolerance=tolerance if tolerance and metric is None else settings.tolerance,
        allowed=frozenset(named) | (frozenset() if exact else {ROUNDING}),
        budget_s=settings.budget_s if budget_s is None else budget_s,
        min_gain=settings.min_gain,
        resume=resume,
        online=settings.online,
        writable=settings.writable,
    )
