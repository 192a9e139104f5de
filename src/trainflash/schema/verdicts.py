"""What an experiment showed: `fidelity.v1`, `verdict.v1`, `experiment.v1`, `tuning_log.v1`, `approval.v1`. History: v1, first version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from trainflash.schema.findings import Change, Kind
from trainflash.schema.runs import Command, Location, WordChange
from trainflash.schema.summaries import PhaseStat

# Changes in kind that an owner may agree to by name. Nobody can agree to fewer updates or samples, another loss, other gradients or
# weights, targets that do not belong to their samples, a checkpoint that cannot be resumed, or work that is done only while it is watched.
CONSENTS = ("order", "numerics", "precision", "cadence", "schedule", "batch", "shape", "coverage", "evaluation", "unseen")
# What comes now and then in a training, and may lie behind the updates that were compared.
OCCASIONS = ("epoch boundary", "evaluation", "checkpoint", "schedule")
AGREEABLE = frozenset(CONSENTS) - {"numerics"}  # asked of the owner; rounding is accepted unasked, or every bit is asked for


@dataclass(frozen=True)
class Check:
    """One comparison. `ok` None: not measured, `evidence` says why."""

    name: str
    ok: bool | None
    evidence: str
    counts: tuple[int, int] | None = None  # of what it counts, in the baseline and in the candidate; None: it counts nothing


@dataclass(frozen=True)
class Fidelity:
    """`fidelity.json`: does the candidate still train the same?"""

    SCHEMA: ClassVar[str] = "fidelity.v1"
    verdict: Literal["same", "close", "changed", "inconclusive"]
    changed: tuple[str, ...]  # what changed in kind: order, batch, schedule, numerics, cadence, coverage, …
    mean_abs_loss_delta: float | None
    max_abs_loss_delta: float | None
    tolerance: float
    updates: int
    seen: tuple[str, ...]  # of: epoch boundary, evaluation, checkpoint, schedule
    not_seen: tuple[str, ...]  # of the same, and changed lines that never ran: train.py:71-73; a file alone: never imported
    checks: tuple[Check, ...]
    reasons: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()  # soft checks without an answer
    notes: tuple[str, ...] = ()  # how it was compared, where that is not the usual way
    agreements: tuple[str, ...] = ()  # changes in kind that it was compared under as agreed to: the owner's, and those that he may give yet


@dataclass(frozen=True)
class Speedup:
    """exp(mean y) with its interval ("95 %, looks included"); `p95` and `p99` are ratios of tails, None where steps are too few."""

    mean: float
    ci_low: float
    ci_high: float
    starts: int
    p95: float | None = None
    p99: float | None = None
    tail_reason: str = ""
    p95_low: float | None = None
    p95_high: float | None = None
    p99_low: float | None = None
    p99_high: float | None = None
    own_p95: float | None = None  # ratio of tails of the median over starts at each step index: repeatable slow steps only
    own_p99: float | None = None


@dataclass(frozen=True)
class RunPart:
    """Some steps of a run, `first` to `last`: milliseconds of a step of both sides, and how many times as fast the candidate's are."""

    first: int
    last: int
    baseline_ms: float
    candidate_ms: float
    speedup: float


@dataclass(frozen=True)
class WholeRun:
    """The owner's run from start to end. Steps are the baseline's, after the first timed one.

    `basis`: `measured` from start to end; `no_trend`: made of steps that do not change along it (`seen` says which); `not_claimed`:
    nothing is said of it, because its length is unknown or its steps change beyond those that were seen.
    """

    speedup: float | None  # None: not claimed
    steps: int | None
    baseline_s: float | None
    candidate_s: float | None
    startup_s: float | None  # of the baseline, from process start to the first timed step: imports, compiling, a first epoch
    lost_s: float | None  # what the candidate comes later by; 0.0: not more than noise
    break_even_steps: int | None  # after so many steps it has won that back
    not_timed: tuple[str, ...] = ()  # phases of which no timed step was sure to hold one; they weigh as in the baseline
    ci_low: float | None = None  # of `speedup`, over starts
    ci_high: float | None = None
    basis: Literal["measured", "no_trend", "not_claimed"] = "not_claimed"
    seen: str = ""  # the steps that were timed, and whether they change
    by_step: tuple[RunPart, ...] = ()  # where they change: the speed-up along the run


@dataclass(frozen=True)
class Resources:
    """What both sides used beside time: CPU time a step of all processes, and the most memory they held, shared pages once."""

    baseline_cpu_ms: float | None
    candidate_cpu_ms: float | None
    baseline_peak_mb: float | None
    candidate_peak_mb: float | None
    baseline_device_peak_mb: float | None = None
    candidate_device_peak_mb: float | None = None


@dataclass(frozen=True)
class SpeedVerdict:
    """What the rule of `trainflash.stats` says after these starts."""

    decision: Literal["accept", "reject", "inconclusive", "continue"]
    speedup: Speedup | None
    reason: str
    least_detectable: float | None = None  # smallest speed-up that this noise could show with 90 % power
    starts_needed: int | None = None
    unit: str = "step"  # what a time is per: step, step after the first epoch, sample, token
    whole_run: WholeRun | None = None
    resources: Resources | None = None


@dataclass(frozen=True)
class Verdict:
    """`verdict.json`: speed and fidelity together. Fails closed.

    `needs_agreement`: nothing speaks against it but changes in kind that the owner may agree to by name (`needs`), and has not yet.
    """

    SCHEMA: ClassVar[str] = "verdict.v1"
    verdict: Literal["accept", "reject", "inconclusive", "needs_agreement"]
    speedup: Speedup | None
    fidelity: Fidelity | None
    starts: int
    reasons: tuple[str, ...]
    protection: str = ""
    spent_s: float = 0.0
    unit: str = "step"
    whole_run: WholeRun | None = None
    resources: Resources | None = None
    least_detectable: float | None = None  # smallest speed-up that this noise could show with 90 % power
    starts_needed: int | None = None  # for a true 1.05, with this noise
    needs: tuple[str, ...] = ()  # agreements without which it cannot be accepted; () where they would not help

    @property
    def gain(self) -> float:
        """The speed-up that was seen, whatever the verdict on it; 0 where none was measured."""
        return self.speedup.mean if self.speedup else 0.0

    @property
    def to_agree(self) -> str:
        """The option that agrees to what it waits for, with each agreement that it rests on already; "" where it waits for none."""
        if self.verdict != "needs_agreement":
            return ""
        names = {*self.needs, *AGREEABLE.intersection(self.fidelity.changed if self.fidelity else ())}
        return f"--accept-change {','.join(sorted(names))}"


@dataclass(frozen=True)
class Experiment:
    """`experiments/<n>/experiment.json`: one knob, one commit in the sandbox. `diff_digest` is SHA-256 of the diff's bytes."""

    SCHEMA: ClassVar[str] = "experiment.v1"
    n: int
    parent: int | None  # accepted experiment that this one builds on
    knob: str
    value: str
    finding: Kind | None
    location: Location | None
    risk: Change
    why: str
    commit: str
    parent_commit: str
    diff_digest: str
    files: tuple[str, ...]
    command: Command
    created_utc: str
    verdict: Verdict | None = None
    decision: Literal["pending", "accepted", "rejected", "inconclusive", "needs_agreement", "failed"] = "pending"
    environment: dict[str, str] = field(default_factory=dict)  # variables that are part of the change: the candidate's alone
    words: tuple[WordChange, ...] = ()  # of the command, that are part of the change
    saved_share: float | None = None  # of the wall time, that its finding's ceiling promised when it was tried

    @property
    def agree_command(self) -> str:
        """What its owner types to agree to what it waits for; "" where it waits for none."""
        option = self.verdict.to_agree if self.verdict else ""
        return f"trainflash verify --experiment {self.n} {option}" if option else ""


def as_changed(command: Command, experiments: Iterable[Experiment]) -> Command:
    """The command with the variables and words that are part of these changes, in their order.

    Raises `UsageError` where it is another command than the one whose words they change.
    """
    for experiment in experiments:
        changed = command.with_words(experiment.words)
        command = replace(changed, env={**command.env, **experiment.environment})
    return command


@dataclass(frozen=True)
class LogEntry:
    """One document of `tuning_log.yaml` (a multi-document YAML file, appended only)."""

    SCHEMA: ClassVar[str] = "tuning_log.v1"
    kind: Literal["sandbox", "diagnosis", "experiment", "combination", "author", "writeback", "note"]
    at_utc: str
    what: str
    why: str = ""
    experiment: int | None = None  # of a diagnosis: the accepted one that it was made on; of a note: the one that it is about
    parent: int | None = None
    knob: str = ""
    value: str = ""
    finding: Kind | None = None
    diff_digest: str = ""
    command: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    before_step_ms: float | None = None  # means; of an experiment the medians over its starts
    after_step_ms: float | None = None
    before_p95_ms: float | None = None
    after_p95_ms: float | None = None
    before_p99_ms: float | None = None
    after_p99_ms: float | None = None
    before: dict[str, PhaseStat] = field(default_factory=dict)  # phases of a diagnosis, or of the one that an experiment rests on
    after: dict[str, PhaseStat] = field(default_factory=dict)  # phases of the diagnosis that followed; only where the log is shown
    speedup: Speedup | None = None
    fidelity: str = ""
    mean_abs_loss_delta: float | None = None
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    decision: str = ""
    by: str = "trainflash"  # who decided: trainflash, owner (terminal), owner (digest), …
    model: str = ""  # of an author: as it names it itself
    cost_usd: float | None = None  # as it says itself; None: it does not
    minutes: float | None = None  # that it took to answer
    brief_digest: str = ""  # SHA-256 of the brief that it was given


@dataclass(frozen=True)
class Approval:
    """`writebacks/<digest>.json`: what was written back, how it was approved, and what `--undo` needs."""

    SCHEMA: ClassVar[str] = "approval.v1"
    digest: str
    experiments: tuple[int, ...]
    how: Literal["terminal", "digest", "elicitation"]
    at_utc: str
    files: tuple[str, ...]
    undone: bool = False
    branch: str = ""  # where it was committed; "": into the working tree
    commit: str = ""
