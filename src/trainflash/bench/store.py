"""What a comparison keeps on disk: one line per start, how the next start is to be measured, and what all of them have in common."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainflash.bench.fingerprint import differences
from trainflash.bench.paced import Plan
from trainflash.errors import Inconclusive, TrainFlashError, UsageError
from trainflash.schema import Start, from_plain, to_plain, write_atomically

SEEN_IN_STARTS = frozenset({"python", "torch", "device", "the number of its steps"})  # facts that only a start can show
_ANEW = "compare again without --resume: it begins anew"


@dataclass(frozen=True)
class Kept:
    """What was there when a comparison began: starts that count, the plan, and why older starts were set aside ("" where none were)."""

    starts: tuple[Start, ...]
    plan: Plan
    set_aside: str = ""


class Store:
    """`starts.jsonl` (appended and synced as each start is measured), `steps.jsonl` (step times of those that count) and `bench.json`.

    Starts of the same comparison are counted together however often it is asked for: a rule that may be asked afresh until it says
    yes has no error rate. Only another machine, version, setting or program begins anew; what was measured before is set aside.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.starts_path = directory / "starts.jsonl"
        self.steps_path = directory / "steps.jsonl"
        self.state_path = directory / "bench.json"
        self.compared = ""
        self.facts: dict[str, str] = {}
        self.asked: dict[str, Any] = {}  # the question, to be asked alike again
        directory.mkdir(parents=True, exist_ok=True)

    def begin(self, compared: str, facts: Mapping[str, str], first: Plan, *, resume: bool) -> Kept:
        """The starts measured so far and the plan. Raises `UsageError` when resuming what was measured under other conditions."""
        state = self._state(resume)
        before = state.get("facts", {}) if state else {}
        changed = differences({name: value for name, value in before.items() if name not in SEEN_IN_STARTS}, facts) if state else []
        if state and state.get("compared") != compared:
            changed.insert(0, "the programs, commands or settings are not those of the starts measured before")
        if changed and resume and any(start.y is not None for start in self._starts()):
            raise UsageError(f"nothing can be resumed: {'; '.join(changed)}", _ANEW)
        self.compared, self.facts = compared, {**before, **facts} if state and not changed else dict(facts)
        if state is None or changed:
            aside = self.set_aside(changed)
            self.save_plan(first)
            return Kept((), first, aside)
        return Kept(tuple(self._starts()), from_plain(Plan, state.get("plan"), str(self.state_path)))

    def agree(self, seen: Mapping[str, str], *, resume: bool) -> str:
        """Hold what a start showed against the starts before it; "" when they go together, else why those were set aside.

        Raises `UsageError` when resuming.
        """
        known = {name: value for name, value in seen.items() if name in self.facts}
        changed = differences({name: self.facts[name] for name in known}, known)
        if changed and resume:
            raise UsageError(f"nothing can be resumed: {'; '.join(changed)}", _ANEW)
        self.facts |= seen
        return self.set_aside(changed) if changed else ""

    def set_aside(self, why: list[str]) -> str:
        """Move the starts away, so that they count no longer; says so when there were any."""
        count = len(self._starts()) if self.starts_path.exists() else 0
        number = 1 + len(list(self.directory.glob("starts-before-*.jsonl")))
        if count:
            self.starts_path.rename(self.directory / f"starts-before-{number}.jsonl")
        self.starts_path.unlink(missing_ok=True)
        self.steps_path.unlink(missing_ok=True)
        return f"{count} earlier starts do not count: {'; '.join(why) or 'their state was lost'}" if count else ""

    def _state(self, resume: bool) -> dict[str, Any] | None:
        if not self.state_path.exists():
            return None
        try:
            state = json.loads(self.state_path.read_text(encoding="utf-8"))
            return state if isinstance(state, dict) else None
        except (OSError, ValueError) as bad:
            if resume:
                raise UsageError(f"{self.state_path}: cannot be read: {bad}", _ANEW) from None
            return None

    def _starts(self) -> list[Start]:
        return [from_plain(Start, plain, str(self.starts_path)) for plain in _lines(self.starts_path)]

    def save_plan(self, plan: Plan) -> None:
        state = {"compared": self.compared, "asked": self.asked, "facts": self.facts, "plan": asdict(plan)}
        write_atomically(self.state_path, json.dumps(state, indent=2) + "\n")

    def append(self, start: Start, steps: Mapping[str, Any] | None = None) -> None:
        """Keep a start, and with it the step times of both sides. Raises `Inconclusive` when the disk is full."""
        try:
            if steps is not None:
                _append(self.steps_path, {"n": start.n, **steps})
            _append(self.starts_path, to_plain(start))
        except OSError as bad:
            raise no_room(bad, self.directory) from None

    def steps(self, numbers: set[int]) -> list[dict[str, Any]]:
        """Step times of the starts in `numbers`."""
        return [line for line in _lines(self.steps_path) if line.get("n") in numbers]

    def keep_first(self, count: int) -> None:
        """Forget all starts but the first `count`: what was measured after them cannot be trusted."""
        kept = _lines(self.starts_path)[:count]
        write_atomically(self.starts_path, "".join(json.dumps(line) + "\n" for line in kept))


def no_room(bad: OSError, where: Path) -> TrainFlashError:
    """The error for a failed write: a full disk is no verdict, and what was kept before stays."""
    what = "the disk is full" if bad.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} else bad.strerror or str(bad)
    return Inconclusive(f"{where}: {what}; the starts measured before are kept", "make room there, then run it again with --resume")


def _append(path: Path, plain: Any) -> None:
    """One whole line, synced, or none: what part of it found room is taken away again."""
    data = json.dumps(plain, allow_nan=False).encode() + b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    before = os.fstat(handle).st_size
    try:
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, before)
        raise
    finally:
        os.close(handle)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Complete lines; a last one torn by a kill is cut off, so that the next begins on a line of its own."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    return [json.loads(line) for line in whole.splitlines()]
