"""Which two states of a program a verdict is about, and what was run."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainflash.schema.verdicts import Verdict


@dataclass(frozen=True)
class State:
    """One side of a comparison. `commit`: the owner's, None where no commit of his holds it; `tree`: git's hash of its files."""

    name: str  # as it was asked for: main, faster.diff, experiment 2
    commit: str | None
    tree: str

    def __str__(self) -> str:
        return self.name if self.commit is None or self.commit.startswith(self.name) else f"{self.name} ({self.commit[:7]})"


@dataclass(frozen=True)
class Compared:
    """What a verdict is about: both states, and the training command that ran in them, as it may be shown."""

    baseline: State
    candidate: State
    command: str
    note: str = ""  # how a state was chosen that nobody named


@dataclass(frozen=True)
class Verified:
    """A verdict with what it is about; `machine`: what its starts had in common, {} where nothing was timed."""

    verdict: Verdict
    compared: Compared
    machine: dict[str, str] = field(default_factory=dict)
