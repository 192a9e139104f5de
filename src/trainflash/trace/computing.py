"""What the probe saw of the computing itself: cumulative counters over time, censuses of operators, compilations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainflash.schema.computing import Numerics, Parts, UndoneLayout, Updates
from trainflash.schema.runs import Location


@dataclass(frozen=True)
class Counter:
    """A count that only grows, read now and then, at moments of CLOCK_MONOTONIC."""

    t_ns: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class SyncTrace:
    """Calls of one line that copy to the host or wait for the device."""

    location: Location | None
    call: str
    phase: str
    on_device: bool
    count: Counter
    ns: Counter


@dataclass(frozen=True)
class CompileTrace:
    """Compilations: begin and length of each one seen, and what torch counted in the whole run."""

    start_ns: np.ndarray
    ns: np.ndarray
    frames: int
    graph_breaks: int
    reasons: tuple[str, ...]  # most frequent first
    limit_hit: bool
    location: Location | None


@dataclass(frozen=True)
class GcTrace:
    """Garbage collections by generation, their time, and calls of `gc.collect`."""

    counts: tuple[Counter, Counter, Counter]
    ns: Counter
    called: Counter
    location: Location | None
    struck: tuple[tuple[str, Location | None, int, int], ...] = ()  # phase, the owner's line, long ones that came there, their ns


@dataclass(frozen=True)
class RecomputeTrace:
    """Checkpointed calls of one line: in forward, and the time that they took again in backward."""

    location: Location | None
    calls: Counter
    ns: Counter
    steps: Counter


@dataclass(frozen=True)
class ForwardRepeatTrace:
    """Modules that one line calls with inputs that they had in the same step."""

    location: Location | None
    per_step: float  # such calls
    part: float  # of all time in modules outside backward and update
    recorded: float  # the same of those calls alone that record for a backward pass
    modules_ns: float  # of a step: all that time in modules


@dataclass(frozen=True)
class FrozenTrace:
    """A network that nobody trains, called from one line: how many of the rows it was given it had been given before."""

    location: Location | None
    of_calls: float  # part of the calls of networks from that line that are calls of this one
    rows: int  # of the later half of what was looked at
    again: int  # of these


@dataclass(frozen=True)
class InVainTrace:
    """Modules that one line calls and that record for gradients which no optimizer takes."""

    location: Location | None
    direct: bool  # it calls them itself, not a module that holds them
    held: bool  # an optimizer has their parameters, but gets these gradients in updates of others alone and throws them away
    per_step: float  # such calls
    recorded: float  # of all time in modules that record for a backward pass
    modules_ns: float  # of a step: all that time


@dataclass(frozen=True)
class StartTrace:
    """Processes or threads that one line starts, again and again: how many times, and the time that starting and ending them took."""

    location: Location | None
    what: str  # "process" or "thread"
    made: Location | None  # the line that made the pool; the same line where there is none
    count: Counter
    ns: Counter


@dataclass(frozen=True)
class MemoryTrace:
    """Readings of the process's memory; a figure that was never read is None."""

    peak_bytes: int | None
    limit_bytes: int | None
    swapped_bytes: int | None
    faults: Counter
    events: Counter | None
    stalled_us: Counter | None
    device: dict[str, int | None] | None  # peak, reserved, total (bytes), retries


@dataclass(frozen=True)
class AttentionCall:
    """Attention outside a fused kernel, in one census; `backward_ns` None: its backward was not seen."""

    kind: str
    shape: tuple[int, ...]
    calls: int
    forward_ns: int
    backward_ns: int | None


@dataclass(frozen=True)
class AttentionLine:
    """Calls of softmax, exp or scaled_dot_product_attention by the owner's line, in one step."""

    kind: str  # "softmax", "exp" or "sdpa"
    location: Location | None
    shape: tuple[int, ...]
    reason: str
    calls: int


@dataclass(frozen=True)
class TargetCall:
    """Predictions of classes in one census: their product, what else is done with them, their loss."""

    shape: tuple[int, ...]  # of the predictions
    calls: int
    forward_ns: int
    backward_ns: int | None


@dataclass(frozen=True)
class TargetLine:
    """Calls of a loss over classes by the owner's line, in one step, and how many of their targets it ignores. Seen on the host only."""

    location: Location | None
    shape: tuple[int, ...]
    calls: int
    targets: int
    ignored: int


@dataclass(frozen=True)
class CensusTrace:
    """Operators of one step up to its last update. Times are nanoseconds on the host.

    `mode_ns`: in dispatch modes' own code; `data_ns`: in operators that make batches, which count nowhere else; `accumulated_ns`: in
    adding gradients up; `double_ns`: in operators that compute in float64, with their backward; `table_ns`: in gradients of whole lookup
    tables; `thin`: smallest side of products of matrices, up to 16, and time in such products, those of 20 µs and more.
    """

    step: int
    ns: int
    ops: int
    op_ns: int
    small_ns: int
    optimizer_ops: int
    matmul_ns: int
    conv_ns: int
    copy_ns: int
    mode_ns: int = 0
    data_ns: int = 0
    convs: int = 0
    accumulated_ns: int = 0
    double_ns: int = 0
    table_ns: int = 0
    thin: tuple[tuple[int, int], ...] = ()
    attention: tuple[AttentionCall, ...] = ()
    targets: tuple[TargetCall, ...] = ()


@dataclass(frozen=True)
class SizeTrace:
    """Parameters of the trained networks, and what entered them in some early steps, of one process.

    `embedding`: in lookup tables; `multiplying`: factors of matrix products. `tokens` and `samples` are a step's, None where not seen;
    tokens only where all that enters is token ids.
    """

    parameters: int
    embedding: int
    multiplying: int
    samples: float | None
    tokens: float | None


@dataclass(frozen=True)
class ComputeTrace:
    """All of it for one process; None or empty where the run carried no such facts."""

    syncs: tuple[SyncTrace, ...] = ()
    compilation: CompileTrace | None = None
    collections: GcTrace | None = None
    recompute: tuple[RecomputeTrace, ...] = ()
    forward_repeats: tuple[ForwardRepeatTrace, ...] = ()
    frozen: tuple[FrozenTrace, ...] = ()
    in_vain: tuple[InVainTrace, ...] = ()
    starts: tuple[StartTrace, ...] = ()
    memory: MemoryTrace | None = None
    censuses: tuple[CensusTrace, ...] = ()
    attention_lines: tuple[AttentionLine, ...] = ()
    target_lines: tuple[TargetLine, ...] = ()
    double_at: Location | None = None  # where a step goes over to float64
    undone_layout: UndoneLayout | None = None
    convolution_setups: tuple[tuple[int, int], ...] = ()  # of one step each: convolutions that were set up, and nanoseconds of that
    updates: Updates | None = None
    parts: Parts | None = None
    numerics: Numerics | None = None
    sizes: SizeTrace | None = None
