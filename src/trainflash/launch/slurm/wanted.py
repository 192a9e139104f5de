"""What is asked of Slurm: from the options of the command line, else from `[slurm]` in the project's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainflash.errors import UsageError

WAIT_S = 3600.0  # in the queue
LEAST_TIME_S = 3600.0  # of a job, unless the owner says otherwise
START_AND_END_S = 1800.0  # beside the budget: a check of the training, a diagnosis, the end
# What the job needs as it is, and what has an option of its own.
_OURS = frozenset({"array", "chdir", "error", "export-file", "input", "open-mode", "output", "parsable", "signal", "test-only", "wrap"})
_OWN_OPTION = {"time": "--slurm-time", "partition": "--slurm-partition", "constraint": "--slurm-constraint", "wait": "--slurm-wait"}
_KEY = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Wanted:
    """`options` are further options of sbatch by their long names; True for one without a value. `wait_s` bounds the stay in the queue."""

    partition: str = ""
    constraint: str = ""
    time_s: float = LEAST_TIME_S
    wait_s: float = WAIT_S
    options: Mapping[str, str | bool] = field(default_factory=dict)

    def parameters(self) -> dict[str, str | bool]:
        """Options of sbatch, beside the time."""
        named = {"partition": self.partition, "constraint": self.constraint}
        return {**{name: value for name, value in named.items() if value}, **self.options}

    def of_a_node(self) -> dict[str, str | bool]:
        """Those of `parameters` that say which nodes and on whose account; not how many, nor what on them."""
        names = ("partition", "constraint", "account", "qos", "reservation", "nodelist", "exclude")
        return {name: value for name, value in self.parameters().items() if name in names}


def wanted(
    settings: Mapping[str, Any],
    *,
    partition: str | None = None,
    constraint: str | None = None,
    time_s: float | None = None,
    wait_s: float | None = None,
    options: Sequence[str] = (),
    budget_s: float | None = None,
) -> Wanted:
    """The settings' `[slurm]` with what was typed over it; without a time limit twice the budget and half an hour, at least an hour.

    Durations of the settings are in seconds. Raises `UsageError` for an option that is none, or that a job of ours sets itself.
    """
    unknown = sorted(set(settings) - {"partition", "constraint", "time", "wait", "options"})
    if unknown:
        raise UsageError(f"[slurm]: unknown setting {unknown[0]!r}", "known settings: partition, constraint, time, wait, options")
    more: dict[str, str | bool] = {}
    for word in (*settings.get("options", ()), *options):
        key, given, value = str(word).partition("=")
        key = key.strip().lstrip("-").replace("_", "-")
        if not _KEY.fullmatch(key):
            raise UsageError(f"{word!r} is no option of sbatch", "write KEY=VALUE with its long name, such as nodes=2 or exclusive")
        if key in _OWN_OPTION:
            raise UsageError(f"{key} has an option of its own", f"give {_OWN_OPTION[key]}")
        if key in _OURS:
            raise UsageError(f"{key} is set by trainflash itself", "leave it out")
        more[key] = value if given else True
    return Wanted(
        partition=partition or str(settings.get("partition", "")),
        constraint=constraint or str(settings.get("constraint", "")),
        time_s=time_s or settings.get("time") or max(LEAST_TIME_S, 2 * (budget_s or 0.0) + START_AND_END_S),
        wait_s=wait_s or settings.get("wait") or WAIT_S,
        options=more,
    )
