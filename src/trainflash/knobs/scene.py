"""What an edit looks at, and what it answers: the places where it could be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainflash.knobs.facts import Facts
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.splices import Edit, Splice
from trainflash.schema import Finding, Location, Summary
from trainflash.schema.findings import Change

MEMINFO = Path("/proc/meminfo")
CGROUP_LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


@dataclass(frozen=True)
class Scene:
    """One program, one run of it, and the finding to answer; `at` is the owner's choice of a place, `memory_bytes` what is free.

    `whole_steps` are all steps of the program, where another run than this one came to its end.
    """

    project: Project
    summary: Summary
    finding: Finding | None
    at: Location | None
    memory_bytes: int | None
    whole_steps: int | None = None

    @property
    def facts(self) -> Facts:
        """The run and the finding, for conditions and values."""
        return Facts(self.summary, self.finding, self.whole_steps)

    def source(self, doing: str, seen: Location | None = None) -> tuple[PythonFile, Location]:
        """Where to look: the owner's choice, else what was `seen`, else the finding's place, with its file.

        Raises `UsageError`, which says what the line is `doing`, where none of them stands in the project's own source.
        """
        place = self.at or seen or (self.finding.location if self.finding is not None else None)
        if place is None or not self.project.owns(place):
            raise refuse(f"the line that {doing} is not in this project's own source")
        return self.project.python(place.file), place


@dataclass(frozen=True)
class Target:
    """One place where an edit can be made. `current` is the value in force there; `write` makes the edit for a value."""

    location: Location
    current: Any
    write: Callable[[Any], tuple[Edit, ...]]
    where: str  # for a reader, such as "num_workers of the call at train.py:40"
    label: str = ""  # shown as the candidate's value, where the value alone says nothing
    risk: Change | None = None  # where this place may change more than the knob says
    because: str = ""
    most: int | None = None  # a number of steps or epochs beyond this would never come; the knob's own values end here

    def also(self, *more: Splice) -> Target:
        """The same target, whose edit makes these changes too."""
        return replace(self, write=lambda value: (*self.write(value), *more))

    def within(self, value: Any) -> Any:
        """`value`, or what it may be at most."""
        return min(value, self.most) if type(value) is int and self.most is not None else value


def available_memory() -> int | None:
    """Bytes that can still be used: the machine's, or the control group's where that is less; None where neither can be read."""
    found = []
    try:
        line = next(line for line in MEMINFO.read_text(encoding="ascii").splitlines() if line.startswith("MemAvailable:"))
        found.append(1024 * int(line.split()[1]))
    except (OSError, StopIteration, ValueError):
        pass
    for limit, used in CGROUP_LIMITS:
        try:
            found.append(int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return max(0, min(found)) if found else None
