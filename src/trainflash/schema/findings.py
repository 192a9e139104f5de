"""What was found and what could be tried: `findings.v1`, `plan.v1`.

History: v1, first version; `precision` as a risk came later, then `sites` of diagnoses and briefs, then what briefs tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from trainflash.schema.runs import Location, WordChange
from trainflash.schema.sites import Site
from trainflash.schema.summaries import PhaseStat

Kind = Literal[
    "input_cpu", "input_io", "input_tail", "collate", "worker_startup", "repeated_work", "h2d", "sync_point", "launch_overhead",
    "logging", "checkpoint", "evaluation", "padding", "shape_instability", "recompilation", "thread_oversubscription",
    "small_microbatch", "optimizer", "debug_api", "recompute", "attention_kernel", "precision", "memory_format", "communication",
    "rank_straggler", "throttling", "memory_pressure", "worker_memory", "garbage_collection", "host_code", "slow_operator", "callback",
    "growth", "startup", "stream_wait", "hung", "compute",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Ceiling:
    """The speed-up if this cost were gone; `bound` is arithmetic on shares (an upper bound), `measured` a replay."""

    speedup: float
    how: Literal["measured", "bound"]


@dataclass(frozen=True)
class Evidence:
    """One figure that the finding rests on."""

    name: str
    value: float | str
    unit: str = ""


@dataclass(frozen=True)
class Finding:
    """One bottleneck. `share` is of the steady wall time; `knobs` are candidates, best first."""

    kind: Kind
    phase: str
    bound_by: Literal["input", "io", "host", "device", "communication"]
    share: float
    severity: Literal["high", "medium", "low", "none"]
    summary: str  # one sentence for a person
    evidence: tuple[Evidence, ...]
    location: Location | None
    ceiling: Ceiling | None
    knobs: tuple[str, ...]
    tied_with: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()  # all that `share` is spread over, where that is more than `phase`
    also: tuple[str, ...] = ()  # knobs that answer the kind, but that the evidence does not point at; tried after `knobs`


@dataclass(frozen=True)
class Diagnosis:
    """`findings.json`. The first finding is the bottleneck; `abstained` says why there is none to trust."""

    SCHEMA: ClassVar[str] = "findings.v1"
    run: str
    steps: int
    wall_s: float
    timeline: Literal["host", "device"]
    coverage: float
    phases: dict[str, PhaseStat]
    findings: tuple[Finding, ...]
    abstained: str | None
    notes: tuple[str, ...] = ()
    sites: tuple[Site, ...] = ()  # the five largest, healthy or not
    together: Ceiling | None = None  # without all the costs that were found
    advice: tuple[str, ...] = ()  # after an abstention: what would make a diagnosis possible


Change = Literal["same", "close", "order", "numerics", "precision", "cadence", "schedule", "batch"]


@dataclass(frozen=True)
class Worth:
    """Why a candidate stands where it stands in the plan: what it could save, how likely that is, and what finding out costs."""

    saved_share: float  # of the wall time, if the whole cost that it answers were gone
    chance: float
    cost_s: float

    @property
    def score(self) -> float:
        """Share of the wall time that an hour of experiments like this one is expected to save."""
        return 3600 * self.saved_share * self.chance / self.cost_s


@dataclass(frozen=True)
class Candidate:
    """One experiment that could be made: exactly one knob at one place with one value."""

    knob: str
    value: str
    finding: Kind
    location: Location | None
    risk: Change  # what it may change in the training; "close": its rounding
    diff: str
    why: str
    environment: dict[str, str] = field(default_factory=dict)
    words: tuple[WordChange, ...] = ()  # of the command; a change of these alone has an empty diff
    worth: Worth | None = None  # None: chosen by hand


@dataclass(frozen=True)
class Refusal:
    """A knob that answers a finding but cannot be applied here, and why."""

    knob: str
    finding: Kind
    reason: str
    moot: bool = False  # the program has nothing that the knob is about


@dataclass(frozen=True)
class Cost:
    """One cost that a plan answers: a finding, its place and its share of the wall time."""

    finding: Kind
    location: Location | None
    share: float
    saved_share: float  # of the wall time, at most, if it were gone


@dataclass(frozen=True)
class Quoted:
    """A pattern as a brief quotes it: a rewrite that often helps where such a thing is seen, on code of its own."""

    name: str
    title: str
    symptom: str
    before: str
    after: str
    keeps: str
    traps: tuple[str, ...]


@dataclass(frozen=True)
class Excerpt:
    """Code around one line of the project, numbered, the line marked by `>`."""

    location: Location
    code: str


@dataclass(frozen=True)
class Brief:
    """What an assistant needs to write a patch where no mechanical knob fits.

    A plan holds briefs in short; a whole one, as `optimize brief` and authors get it, has `calls`, `agreed` and sites with all that
    was recorded of them, the one that it is about first.
    """

    SCHEMA: ClassVar[str] = "brief.v1"

    finding: Kind
    location: Location | None
    summary: str
    code: str
    evidence: tuple[Evidence, ...]
    ceiling: Ceiling | None
    keep_the_same: str
    judged_by: str
    phase: str = ""
    share: float | None = None  # of the steady wall time
    try_with: str = ""  # the command that makes an experiment of the patch
    tried: tuple[str, ...] = ()  # what knobs came to here, or why they do not apply
    read_rarely: tuple[str, ...] = ()  # fields that the line's function sets, and the conditions under which alone they are read
    sites: tuple[Site, ...] = ()  # those of the diagnosis, of each only the end of its path and its costliest operator
    patterns: tuple[Quoted, ...] = ()  # rewrites that fit the place, the likeliest first
    calls: tuple[Excerpt, ...] = ()  # the project's other functions on the call path, from what runs the loop to below the place
    agreed: tuple[str, ...] = ()  # changes in kind that the owner agreed to by name; `numerics`: rounding within the own noise
    refused: str = ""  # why the last answer to this brief was refused: the check, the update, the line
    refused_diff: str = ""  # that answer
    answer: str = ""  # what an answer may be
    command: str = ""  # how the program is run, as a person types it, without secrets


@dataclass(frozen=True)
class Plan:
    """`plan.yaml`: written before anything is tried; candidates in the order in which they will be tried."""

    SCHEMA: ClassVar[str] = "plan.v1"
    run: str
    created_utc: str
    candidates: tuple[Candidate, ...]
    refused: tuple[Refusal, ...] = ()  # that of the knob that could have brought most first, those that are moot last
    briefs: tuple[Brief, ...] = ()
    costs: tuple[Cost, ...] = ()  # all that is worth an experiment, the largest first
    abstained: str | None = None  # why there is no diagnosis that a plan could answer
    advice: tuple[str, ...] = ()  # then: what would make one possible
