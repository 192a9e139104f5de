"""Both sides are started again from what they saved, where the program does that by itself, and compared from there on.

Only this shows what a checkpoint is worth: one that shares memory with the weights in training, or lacks the optimizer's state, looks
like any other until somebody goes on from it. A program that loads its checkpoint only when told so cannot be restarted without editing
it: then the contents of what it saved stand alone, and that is said.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.fidelity import judgement, reuse
from trainflash.fidelity.attempt import Attempt, Starter
from trainflash.fidelity.record import Record, Stream
from trainflash.fidelity.reuse import Kept, Run
from trainflash.fidelity.soft import Limits
from trainflash.schema import Check, Command, Fidelity, Sandbox, Side

_LOADS = re.compile(rb"\bload_state_dict\b|\btorch\.load\b|\bload_checkpoint\b|\bresume_from_checkpoint\b|\bckpt_path\b")
_AFTER = 20  # updates that are compared after the restart: until then weights separate best
_LEAST_AFTER = 3
_FARTHER, _COARSE = 3.0, 100.0  # beside a nudge that is not measured again; contents were compared before
_BROUGHT_BACK = frozenset({"train mode", "optimizer", "learning rate and weight decay", "coverage", "data types", "first loss"})
_SOURCES = 2000
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Commands:
    """How each side is started, and how it is started again to go on from what it saved."""

    baseline: Command
    candidate: Command
    baseline_again: Command
    candidate_again: Command

    @property
    def again(self) -> tuple[Command, Command]:
        return self.baseline_again, self.candidate_again

    @property
    def digest(self) -> str:
        """Stands for the words that go on from a checkpoint, in the names of kept runs."""
        return hashlib.sha256("\0".join(self.baseline_again.argv).encode()).hexdigest()[:8]

    @property
    def told(self) -> bool:
        """The owner said how to go on."""
        return self.baseline_again != self.baseline


@dataclass(frozen=True)
class Shelf:
    """Where runs of the baseline are kept for the next experiment; see `reuse`."""

    place: Path
    key: str | None
    updates: int | None

    def load(self, name: str) -> Run | None:
        return reuse.load(self.place, self.key, self.updates).get(name)

    def keep(self, attempt: Attempt) -> None:
        kept = Kept(attempt.run_dir.name, attempt.record.whole, attempt.seconds)
        reuse.keep(self.place, self.key, self.updates, {attempt.name: kept})


def judge(
    starter: Starter, commands: Commands, directory: Path, shelf: Shelf, record: Record, found: Fidelity, tolerance: float
) -> Fidelity:
    """`found`, with a check of what both sides do when they are started again; unchanged where nothing was saved."""
    if not any(line["n"] for stream in record.trained for line in stream.checkpoints):
        return found
    steps = _point(record, commands.baseline_again.argv if commands.told else ())
    if not commands.told and not _may_load(starter.sandbox):
        return _noted(found, "checkpoints were compared by their contents: the program has no code that loads them")
    if steps is None or len(record.trained) != 1:
        return _noted(found, "checkpoints were compared by their contents: no restart could be tried")
    first = _both(starter, (commands.baseline, commands.candidate), directory, shelf, f"to-restart-{steps}", None, steps)
    if any(run is None or run.outputs is None for run in first):
        return _noted(found, "checkpoints were compared by their contents: what a run saved could not be kept for a restart")
    named = _missing(commands, first)
    if named and "cadence" in found.changed:
        return _noted(found, f"checkpoints were compared by their contents: the candidate writes no {named} to go on from")
    again = _both(starter, commands.again, directory, shelf, f"restarted-{steps}-{commands.digest}", first, _AFTER)
    saved = {line["target"] for run in first if run for stream in run.record.trained for line in (*stream.checkpoints, *stream.stored)}
    return _judged(found, again, saved, tolerance)


def _missing(commands: Commands, first: Sequence[Run | None]) -> str:
    """A file that the owner's command goes on from, which the baseline wrote and the candidate did not."""
    if not commands.told:
        return ""
    written = [{path.name for path in run.outputs.rglob("*")} if run and run.outputs else set() for run in first]
    names = [os.path.basename(word) for word in commands.baseline_again.argv]
    return next((name for name in names if name in written[0] and name not in written[1]), "")


def _judged(found: Fidelity, again: Sequence[Run | None], saved: set[str], tolerance: float) -> Fidelity:
    old, new = again
    if old is None or not _loaded(old.record, saved):
        return _noted(found, "checkpoints were compared by their contents: started again, the program does not load one by itself")
    check = _compared(old.record, None if new is None else new.record, saved, _limits(found, tolerance), set(found.changed))
    checks = (*found.checks, check)
    if check.ok is False:
        changed = tuple(dict.fromkeys((*found.changed, "checkpoint")))
        return replace(
            found, verdict="changed", changed=changed, checks=checks, reasons=(f"{check.name}: {check.evidence}", *found.reasons)
        )
    if check.ok is None:
        return replace(found, checks=checks, not_judged=(*found.not_judged, check.name))
    return _noted(replace(found, checks=checks), "both sides were started again from their checkpoints and compared")


def _limits(found: Fidelity, tolerance: float) -> tuple[float, Limits]:
    """A candidate that is not bitwise the same may after the restart be some times as far off as it was without."""
    if found.verdict == "same":
        return tolerance, Limits(least_updates=_LEAST_AFTER)
    usual = Limits()
    return max(tolerance, _FARTHER * (found.mean_abs_loss_delta or 0.0)), Limits(
        least_updates=_LEAST_AFTER,
        early_weights=_COARSE * usual.early_weights,
        early_gradients=_COARSE * usual.early_gradients,
        early_steps=_COARSE * usual.early_steps,
        first_buffers=math.inf,  # its first update is not the training's
        vectors_most=math.inf,
    )


def _compared(old: Record, new: Record | None, saved: set[str], limits: tuple[float, Limits], agreed: set[str]) -> Check:
    name = "resumed from checkpoint"
    if new is None:
        return Check(name, False, "started again, the baseline goes on and the candidate fails")
    if not _loaded(new, saved):
        return Check(name, False, "started again, the baseline loads its checkpoint and the candidate does not")
    if min(old.updates, new.updates) < _LEAST_AFTER:
        return Check(name, None, f"only {min(old.updates, new.updates)} updates were made after the restart")
    cut = (replace(old, whole=False), replace(new, whole=False))
    compared = judgement.compare(*cut, tolerance=limits[0], limits=limits[1], chance_known=False)
    differences = [check for check in compared.checks if check.ok is False and judgement.change_of(check.name) not in agreed | {"cadence"}]
    if agreed:  # what is not bitwise the same moves inputs that come from the model itself
        differences = [check for check in differences if judgement.change_of(check.name) not in {"samples", "order", "targets", "shape"}]
    if agreed & {"order", "batch", "schedule"}:  # some updates of other work show only what a checkpoint itself must bring back
        differences = [check for check in differences if check.name in _BROUGHT_BACK]
    if differences:
        return Check(name, False, f"after the restart {differences[0].name}: {differences[0].evidence}")
    if compared.verdict == "inconclusive" and not agreed & {"order", "batch", "schedule"}:
        return Check(name, None, f"after the restart: {'; '.join(compared.reasons)}")
    return Check(name, True, f"{compared.updates} updates after the restart: {compared.verdict}")


def _both(
    starter: Starter,
    commands: tuple[Command, Command],
    directory: Path,
    shelf: Shelf,
    name: str,
    carried: Sequence[Run | None] | None,
    steps: int,
) -> list[Run | None]:
    """Both sides for `steps` steps, on top of what `carried` wrote; None for a side that failed."""
    runs: list[Run | None] = [shelf.load(name), None]
    attempts: dict[int, Attempt] = {}
    sides: tuple[Side, Side] = ("baseline", "candidate")
    try:
        for index, side in enumerate(sides):
            if runs[index] is None:
                before = carried[index] if carried is not None else None
                attempts[index] = starter.start(
                    name, side, commands[index], (shelf.place, directory)[index], max_steps=steps,
                    carry=before.outputs if before is not None else None, gather=carried is None,
                )  # fmt: skip
        starter.reach(attempts.values(), None, max(_PATIENCE_S, starter.bounds.most_s))
        for index, attempt in attempts.items():
            failed, record, seconds = attempt.failed, attempt.record, attempt.seconds
            attempt.end()
            runs[index] = None if failed else Run(record, seconds, attempt.log, attempt.outputs)
            if index == 0 and not failed:
                shelf.keep(attempt)
    finally:
        for attempt in attempts.values():
            attempt.end()
    return runs


def _point(record: Record, again: Sequence[str]) -> int | None:
    """Steps until a checkpoint is written that leaves enough of the training to be compared: the one that `again` names, else the last."""
    stream = record.trained[0]
    optimizers = len({update.optimizer for update in stream.updates})
    usable = [line for line in stream.checkpoints if 0 < line["n"] <= len(stream.updates) - _LEAST_AFTER]
    names = {os.path.basename(word) for word in again}
    named = [line["n"] for line in usable if line["target"] in names or names & _read_back(stream, line["n"])]
    good = (
        named[:1] or [line["n"] for line in usable if line["n"] <= len(stream.updates) - _AFTER][-1:] or [line["n"] for line in usable][:1]
    )
    return good[0] // optimizers + 1 if good else None


def _read_back(stream: Stream, n: int) -> set[str]:
    """Names of the files that lay on disk after update `n`: some are written under another name first."""
    return {line["target"] for line in stream.stored if line["n"] == n}


def _loaded(record: Record, saved: set[str]) -> bool:
    """Whether, before it trains, the training process loaded a file whose name is one of `saved`."""
    return any(line["n"] == 0 and line["target"] in saved for stream in record.trained or record.streams for line in stream.loads)


def _may_load(sandbox: Sandbox) -> bool:
    """Whether the project's own source loads anything: else a restart is not worth two more runs."""
    paths = sorted(Path(sandbox.checkout("baseline"), sandbox.prefix).rglob("*.py"))[:_SOURCES]
    return any(_LOADS.search(path.read_bytes()) for path in paths if path.is_file())


def _noted(found: Fidelity, note: str) -> Fidelity:
    return replace(found, notes=(*found.notes, note))
