"""What is known of the program as its owner runs it: its epochs and length, what no timed step shows, and how much work a step is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainflash import bench
from trainflash.fidelity import record
from trainflash.schema import Diagnosis, Fidelity, Summary

LEAST_AFTER_EPOCH = 60  # steady steps that a start needs beside the epoch that is passed
SAME_RATIO = 0.02  # of the two sides' samples, when it is read from two checks of different length
SAME_WORK = 0.005  # samples a step that differ by less (a smaller last batch) are the same
CONSIDERABLE = 0.05  # own: of the time, evaluations that a speed-up may be about
INLINE = "Inline"  # what the record calls updates that lines of the program make


@dataclass(frozen=True)
class Known:
    """`first_epoch`: steps to be passed untimed (0: none, or too long); `steps`: what follows the first timed step (None: unknown)."""

    first_epoch: int = 0
    steps: int | None = None
    said: str = ""
    breaks: dict[str, tuple[float | None, float]] = field(default_factory=dict)
    cycle: int = 0  # steps from one considerable evaluation to the next; 0: there is none, or nobody knows

    def costs(self) -> bench.OwnersRun:
        return bench.OwnersRun(self.steps, self.breaks, self.first_epoch)

    @property
    def whole(self) -> int | None:
        """All steps of the run, the first epoch among them."""
        return None if self.steps is None else self.steps + self.first_epoch


def know(
    known: tuple[Diagnosis, Summary] | None,
    budget_s: float,
    before: bench.Question | None = None,
    counted: int | None = None,
    evaluated: int | None = None,
) -> Known:
    """From the newest diagnosis of the command; `counted` are all its steps, where a check of the training saw its end, and `evaluated`
    those between two evaluations, where it saw such.

    Starts that were measured `before` decide whether the first epoch is passed now, too.

    What a first epoch fills (a cache, persistent workers) pays only from the second one on. Passing it must not cost more than a
    quarter of what a start may take, on both sides, and as many steps must follow.
    """
    summary = known[1] if known is not None else None
    cycle = before.cycle if before is not None else (_cycle(summary) if summary is not None else 0) or evaluated or 0
    return replace(_lasting(summary, budget_s, before, counted), cycle=cycle)


def _cycle(summary: Summary) -> int:
    """Steps from one evaluation to the next, of those that take a considerable part of the time."""
    found = [each for each in summary.activities if each.phase == "Eval" and each.every_steps]
    first = max(found, key=lambda each: each.count * each.mean_ms, default=None)
    if first is None or first.every_steps is None or summary.phases["Eval"].share < CONSIDERABLE:
        return 0
    return round(first.every_steps)


def _lasting(summary: Summary | None, budget_s: float, before: bench.Question | None, counted: int | None) -> Known:
    """The epochs and the length."""
    if summary is None:
        return Known(before.first_epoch if before else 0)
    total = summary.steps + summary.warmup_steps
    whole = counted if summary.stopped else total
    breaks = _breaks(summary, whole)
    batches = [
        -(-loader.dataset_len // loader.batch_size)
        for loader in summary.loaders
        if loader.role == "train" and loader.dataset_len and loader.batch_size
    ]
    if before is not None and before.first_epoch:
        return _passing(before.first_epoch, whole, breaks)
    if not summary.epochs or summary.epochs < 2 or not batches:
        return Known(0, whole, "", breaks)
    steps = min(sum(batches), -(-total // (summary.epochs - 1)))
    long = 2 * steps * summary.step_ms.mean_ms / 1e3 > 0.25 * budget_s / bench.STARTS_TO_AFFORD
    if before is not None or long or (not summary.stopped and total < 2 * steps + LEAST_AFTER_EPOCH):
        said = f"only steps of the first epoch were sure to be timed ({steps} steps): what pays from the second one on may be more"
        return Known(0, whole, said, breaks)
    return _passing(steps, whole, breaks)


def _passing(steps: int, whole: int | None, breaks: dict[str, tuple[float | None, float]]) -> Known:
    said = f"timed from step {steps + 1} on, after the first epoch"
    return Known(steps, None if whole is None else whole - steps, said, breaks)


def _breaks(summary: Summary, whole: int | None) -> dict[str, tuple[float | None, float]]:
    """Evaluations and checkpoints: every how many steps, and their seconds in the whole run (in what was seen, if its end is unknown)."""
    words = {"Eval": "evaluations", "Ckpt": "checkpoints"}
    found: dict[str, tuple[float | None, float]] = {}
    for activity in summary.activities:
        if activity.phase in words:
            every = activity.every_steps
            count = activity.count if every is None or whole is None else whole / every
            found[words[activity.phase]] = every, count * activity.mean_ms / 1e3
    return found


def work(directory: Path, baselines: Path, same: Fidelity, before: bench.Question | None = None) -> tuple[tuple[float, float] | None, str]:
    """Samples of one step of the baseline and of the candidate, with the unit; (1, 1) and "step" where a step is the same work.

    Read from what the check of the training recorded. None, with the reason, where the batch changed and nobody counted its samples.
    Starts that were measured `before` keep their figures, which other runs of the check would give a little differently.
    Samples of another size (a shorter sequence, a smaller crop) count as whole ones: the owner has agreed to `shape` by name.
    """
    if not {"batch", "shape"} & set(same.changed):
        return (1.0, 1.0), "step"
    before_it, after_it = _records(baselines, directory), _newest(directory, "candidate")
    if _inline(before_it) or _inline(after_it):
        return None, "the batch changed, and lines of the program make the updates, so each backward is a step: steps do not compare"
    ours, theirs = _samples_a_step(before_it), _samples_a_step(after_it)
    if before is not None and before.unit == "sample" and (not ours or not theirs or _near(before.work, ours, theirs)):
        return before.work, before.unit
    if not ours and not theirs and _same_updates(same):
        return (1.0, 1.0), "step"  # a network of functions alone: no inputs are seen
    if not ours or not theirs:
        return None, "the batch changed, and how many samples a step has could not be seen: steps do not compare"
    if abs(theirs / ours - 1) < SAME_WORK:
        return (1.0, 1.0), "sample" if "shape" in same.changed else "step"
    return (ours, theirs), "sample"


def _same_updates(same: Fidelity) -> bool:
    """Whether each update had the gradient that it had before: of the same samples, in however many parts."""
    held = {check.name for check in same.checks if check.ok}
    return "shape" not in same.changed and held >= {"updates", "loss", "gradient vectors", "step vectors"}


def _inline(streams: Sequence[record.Stream]) -> bool:
    """Whether lines of the program make the updates, which are seen by nothing but what they change."""
    return any(update.optimizer_class == INLINE for stream in streams for update in stream.updates[:1])


def _near(work: tuple[float, float], ours: float, theirs: float) -> bool:
    return abs(work[1] / work[0] / (theirs / ours) - 1) < SAME_RATIO


def _records(*folders: Path) -> Sequence[record.Stream]:
    return next((streams for folder in folders if (streams := _newest(folder, "baseline"))), ())


def _newest(folder: Path, name: str) -> Sequence[record.Stream]:
    runs = [path for path in (*folder.glob(name), *folder.glob(f"{name}-[0-9]*")) if path.is_dir()]
    newest = max(runs, key=lambda path: path.stat().st_mtime, default=None)
    return record.read(newest).streams if newest else ()


def _samples_a_step(streams: Sequence[record.Stream]) -> float | None:
    """Samples of all ranks in one step."""
    trained = [stream for stream in streams if stream.updates]
    samples = sum(update.samples for stream in trained for update in stream.updates)
    return samples / trained[0].steps if samples else None
