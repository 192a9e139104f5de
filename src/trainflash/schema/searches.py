"""How far a search for faster settings has come: `search.v1`. History: v1, first version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

Ending = Literal["", "healthy", "budget", "nothing left", "needs a person"]


@dataclass(frozen=True)
class Search:
    """`search.json`: written after each stage, so that a search that was killed goes on where it stood."""

    SCHEMA: ClassVar[str] = "search.v1"
    asked: str  # digest of the command and of what verdicts are held to: another question is another search
    base_ref: str
    began_utc: str
    earlier: int = 0  # experiments that there were when it began: what has a higher number is its own
    first_run: str = ""  # the very first diagnosis
    diagnosed: dict[str, str] = field(default_factory=dict)  # commit → run of its diagnosis
    experiments: tuple[int, ...] = ()  # those that came to their end
    current: int | None = None  # the one that is being measured
    gone_on_with: tuple[int, ...] = ()  # those that ended open and got the time that was left
    ending: Ending = ""  # "": not at its end yet
    stopped_because: str = ""
