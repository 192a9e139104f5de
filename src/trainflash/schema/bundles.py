"""A verdict that can be handed on: `verify_bundle.v1` (the archive's manifest), `verify_claim.v1`, and what another machine says of it.

History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from trainflash.schema.comparisons import Compared
from trainflash.schema.runs import Command, WordChange
from trainflash.schema.verdicts import Verdict


@dataclass(frozen=True)
class BundleManifest:
    """`manifest.json`: SHA-256 of each other file by its name, and `digest`, that of this document without it. They show no author."""

    SCHEMA: ClassVar[str] = "verify_bundle.v1"
    trainflash: str  # version that wrote it
    files: dict[str, str]
    digest: str = ""


@dataclass(frozen=True)
class Claim:
    """`claim.json`: what the verdict is about and what it was held to. Commands are without secrets and without paths of a machine."""

    SCHEMA: ClassVar[str] = "verify_claim.v1"
    compared: Compared
    baseline: Command
    candidate: Command
    words: tuple[WordChange, ...]  # of the command, that are part of the change
    machine: dict[str, str]
    tolerance: float
    min_gain: float
    allowed: tuple[str, ...]
    metric: str | None = None
    metric_tolerance: float = 1e-3


@dataclass(frozen=True)
class Bundle:
    """An opened bundle. `diff`: from the baseline to the candidate, relative to the project."""

    digest: str
    claim: Claim
    verdict: Verdict
    diff: str


@dataclass(frozen=True)
class Carried:
    """Whether the verdict of a bundle holds here, too. Its figures stand in `there`, those of here beside it; none are mixed."""

    answer: Literal["carries over", "does not", "undecided"]
    digest: str
    there: Verdict
    machine: dict[str, str]  # the one that `there` was measured on
    compared: Compared  # there
    differs: tuple[str, ...] = field(default=())  # what is otherwise here: machine, versions, command, baseline
