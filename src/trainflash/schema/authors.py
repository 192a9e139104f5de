"""What authors did: `author.v1`, one attempt to answer a brief. History: v1, first version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainflash.schema.findings import Kind
from trainflash.schema.runs import Location

Source = Literal["settings", "transforms", "author", "by hand"]


@dataclass(frozen=True)
class Attempt:
    """`authors/<n>/attempt.json`: one start of an author, written when it ended. `ended`: no further attempt of this author makes sense."""

    SCHEMA: ClassVar[str] = "author.v1"
    n: int
    at_utc: str
    author: str
    command: tuple[str, ...]  # without secrets; empty by hand
    parent_commit: str  # the state that it was asked about
    finding: Kind
    location: Location | None
    brief_digest: str  # SHA-256 of the brief's Markdown
    outcome: Literal["patch", "failed", "ended"]
    reason: str = ""
    model: str = ""
    cost_usd: float | None = None  # as it says itself; None: it does not
    minutes: float = 0.0
    words: str = ""  # the end of what it answered
    experiment: int | None = None  # that its patch became


@dataclass(frozen=True)
class Earned:
    """One line of the ledger: what a source of changes brought in this sandbox, and what finding it out cost."""

    source: Source
    tried: int
    accepted: int
    speedup: float | None  # of its accepted changes, one upon the other; None: none was
    measuring_minutes: float
    writing_minutes: float = 0.0
    attempts: int = 0  # of authors
    cost_usd: float | None = None  # as far as authors said
    paid_back_hours: float | None = None  # of the training as it was, after which its minutes are won back
