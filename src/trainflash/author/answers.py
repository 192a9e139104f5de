"""What an author is asked, what bounds it, and what its attempt came to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from trainflash import redact, view
from trainflash.author import diffs, rules, told
from trainflash.schema import Sandbox


@dataclass(frozen=True)
class Limits:
    """What authors may take in one search: `minutes` an attempt, `dollars` (as far as the author tells) and `attempts` in all."""

    minutes: float = 20.0
    dollars: float = 5.0
    attempts: int = 6

    def said(self) -> str:
        """The limits in one sentence, to be said beforehand."""
        return f"at most {self.attempts} attempts of {self.minutes:g} min each and ${self.dollars:.2f} in all, as far as it tells its cost"


@dataclass(frozen=True)
class Task:
    """What the author is given: the brief as Markdown and as JSON, and the project's files that it is about."""

    markdown: str
    document: str
    files: tuple[str, ...] = ()

    def as_files(self) -> Mapping[str, str]:
        return {"BRIEF.md": self.markdown, "brief.json": self.document}


@dataclass(frozen=True)
class Answer:
    """What one attempt came to. `ended`: no further one makes sense, `reason` says why; `failed`: this one is no answer."""

    outcome: Literal["patch", "failed", "ended"]
    reason: str = ""
    diff: str = ""
    command: tuple[str, ...] = ()  # without secrets
    model: str = ""
    cost_usd: float | None = None
    minutes: float = 0.0
    words: str = ""  # the end of what it answered, without secrets


def judged(
    sandbox: Sandbox, changes: Sequence[view.Change], files: Sequence[str], printed: str, stopped: str = "", returncode: int | None = 0
) -> Answer:
    """The answer in what an author changed and printed. `stopped`: why it was ended; `returncode`: what it ended with."""
    said = told.told(printed)
    words = redact.text(said.words).strip()
    answer = Answer("failed", model=redact.text(said.model), cost_usd=said.cost_usd, words=words)
    inside = (replace(change, path=os.path.relpath(change.path, sandbox.prefix or ".")) for change in changes)
    changes = rules.without_litter(inside)
    if not changes and (stopped or returncode != 0 or said.failed) and (hopeless := told.why_not_at_all(printed)):
        return replace(answer, outcome="ended", reason=redact.text(hopeless))
    if stopped:
        return replace(answer, reason=stopped)
    if not changes:
        return replace(answer, reason=_nothing(words, returncode))
    refused = rules.why_not(changes, files, Path(sandbox.worktree, sandbox.prefix))
    diff = "" if refused else diffs.unified(changes)
    refused = refused or rules.too_long(diff)
    return replace(answer, reason=refused) if refused else replace(answer, outcome="patch", diff=diff)


def _nothing(words: str, returncode: int | None) -> str:
    """What an author did that left no change, in one line with its own words."""
    if returncode:
        how = f"it ended with exit code {returncode}" if returncode > 0 else f"it was ended by signal {-returncode}"
    elif not words:
        return "it printed nothing and changed nothing"
    else:
        how = "it asked instead of editing" if words.rstrip("\"'`*_ )").endswith("?") else "it answered in words and changed nothing"
    last = next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "")
    return f"{how}: {last[:200]}" if last else how
