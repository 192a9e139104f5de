"""What works on a machine: `doctor.v1`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class Check:
    """One thing that trainflash needs or can use here.

    `limited`: it works, but less well, or later than one would like; `missing`: it does not. `mend` is what to do about it, "" where
    nothing is needed or possible.
    """

    name: str
    state: State
    found: str
    mend: str = ""
    needed: bool = False  # without it nothing works


@dataclass(frozen=True)
class Health:
    """All checks, in the order in which a newcomer needs them."""

    SCHEMA: ClassVar[str] = "doctor.v1"

    checks: tuple[Check, ...]

    @property
    def works(self) -> bool:
        """Nothing that is needed is missing."""
        return not any(check.needed and check.state == "missing" for check in self.checks)
