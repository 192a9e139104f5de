"""What a run was seen to compute: operators, attention, updates, compilation, memory, number formats. Part of `summary.v1`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainflash.schema.runs import Location


@dataclass(frozen=True)
class SyncPoint:
    """A line of the owner's that made the host wait for the device, or copied a tensor to the host."""

    location: Location | None
    call: str  # item, cpu, tolist, numpy, bool, print, synchronize, empty_cache, nonzero
    count: int  # in the steady part
    mean_ms: float
    share: float  # host time inside these calls ÷ steady wall time
    on_device: bool  # the tensor was on a device; False: no wait, only the call's own cost
    phase: str = "Other"


@dataclass(frozen=True)
class Compilation:
    """What torch.compile did, from torch's own counters and callbacks."""

    frames: int  # compilations in the whole run
    steady: int  # of these in the steady part
    share: float  # time spent compiling ÷ steady wall time
    mean_ms: float | None
    graph_breaks: int
    reasons: tuple[str, ...] = ()  # of recompilations, as torch says them, most frequent first, at most 5
    by_shape: bool = False  # reasons name a size, stride or an int argument that changed
    limit_hit: bool = False  # torch gave up and runs the function uncompiled
    location: Location | None = None  # the call of torch.compile; where there are several, the function that was compiled again
    by_attribute: bool = False  # reasons name a whole number that an object, such as the network, holds


@dataclass(frozen=True)
class Struck:
    """Where training stood when long garbage collections came: what allocated last, which need not be what made them necessary."""

    phase: str
    location: Location | None
    times: int  # in the whole run
    share: float  # of the steady wall time, estimated


@dataclass(frozen=True)
class Collections:
    """Python's garbage collector while training."""

    count: int  # in the steady part, all generations
    full: int  # of generation 2
    share: float  # of the steady wall time
    mean_ms: float
    called: int  # by gc.collect() of the program
    location: Location | None  # the owner's line that calls gc.collect()
    struck: tuple[Struck, ...] = ()  # costliest first


@dataclass(frozen=True)
class Recompute:
    """Forward work done again during backward (activation checkpointing)."""

    location: Location | None  # the owner's line that asks for it
    per_step: float  # checkpointed calls
    share: float  # time spent recomputing ÷ steady wall time


@dataclass(frozen=True)
class InVain:
    """Trained modules whose gradients no optimizer takes, called with inputs that need none: a teacher that nobody froze.

    `held`: one takes others of them, and those of these calls are thrown away: a GAN's generator, called for its critic.
    """

    location: Location | None  # the owner's line that calls them
    direct: bool  # it calls them itself, not a module that holds them
    per_step: float  # such calls
    share: float  # what backward does for them ÷ steady wall time, as their part of the time in modules that record
    held: bool = False


@dataclass(frozen=True)
class ForwardRepeat:
    """Trained modules called again with inputs that they had in the same step, with an equal result. Seen on the host only."""

    location: Location | None  # the owner's line that calls them
    per_step: float  # such calls
    share: float  # their part of the time in modules, of forward and backward ÷ steady wall time


@dataclass(frozen=True)
class FrozenRepeat:
    """A network that nobody trains, such as a teacher or a frozen backbone, answers rows that it has answered. Seen on the host only."""

    location: Location  # the owner's line that calls it
    phase: str  # Fwd, or Eval
    share: float  # estimated, of the steady wall time: what was called there × the part of its rows that came again
    again: float  # that part, of the later half of the rows that were looked at
    rows: int  # so many


@dataclass(frozen=True)
class UndoneLayout:
    """Images with their channels last that the program copies into torch's default order in its forward pass. Seen on the host only."""

    location: Location | None  # the owner's line that makes most of these copies
    per_step: float


@dataclass(frozen=True)
class Started:
    """Processes or threads that the program starts while training, workers of a DataLoader not counted."""

    location: Location | None  # the line that makes the pool, or starts the process or thread
    what: Literal["process", "thread"]
    count: int  # in the steady part: pools, processes or threads
    share: float  # time of starting and ending them ÷ steady wall time
    lines: tuple[tuple[Location, float], ...] = ()  # where that time passes, and its share; costliest first


@dataclass(frozen=True)
class Memory:
    """Memory of the training process (and its children) and of its device."""

    host_peak_bytes: int | None = None  # resident
    host_limit_bytes: int | None = None  # the machine's or the control group's, the smaller
    pressure_share: float | None = None  # time tasks stalled for memory ÷ wall (PSI), where the kernel says it
    limit_events: int | None = None  # times the control group hit its limit during the run
    major_faults: float | None = None  # per steady step
    swapped_bytes: int | None = None
    device_peak_bytes: int | None = None
    device_reserved_bytes: int | None = None
    device_total_bytes: int | None = None
    alloc_retries: int | None = None
    empty_cache_calls: int = 0  # by the program while training
    empty_cache_share: float = 0.0
    empty_cache_at: Location | None = None


@dataclass(frozen=True)
class Attention:
    """Attention that does not run in a fused kernel."""

    kind: Literal["hand_written", "math_fallback"]
    location: Location | None  # the softmax or scaled_dot_product_attention call
    share: float  # estimated: of the steady wall time, forward and backward
    per_step: float
    shape: tuple[int, ...]  # of the scores: batch, heads, queries, keys
    reason: str = ""  # why a fused kernel was not taken, where known


@dataclass(frozen=True)
class IgnoredTargets:
    """Predictions of classes that the loss ignores, as it does where a target is its `ignore_index`. Seen on the host only."""

    location: Location | None  # the owner's line that compares predictions with targets
    share: float  # estimated: of the steady wall time, forward and backward of all these predictions and their loss
    ignored: float  # part of the targets
    per_step: float  # calls of the loss
    shape: tuple[int, ...]  # of the predictions


@dataclass(frozen=True)
class ThinProducts:
    """Products of two matrices of which the smallest side is `rows`, up to 16: what the other two sides hold takes the time."""

    rows: int
    share: float  # of the time in operators, those of 20 µs and more


@dataclass(frozen=True)
class Operators:
    """Census of the operators of a few early steps, on the host (those steps are left out of all statistics)."""

    steps: int
    per_step: float  # operator calls, forward, backward and update
    op_ms: float  # time inside operators per step, outermost ones
    step_ms: float  # wall of those steps
    small_share: float  # part of `op_ms` in operators below 20 µs each, in gradients of single rows, and in recording others
    optimizer_per_step: float | None = None  # operator calls inside the optimizer
    conv_share: float | None = None  # part of `op_ms`
    matmul_share: float | None = None
    copy_share: float | None = None  # copies, casts and layout changes
    kernels_per_step: float | None = None  # device kernels launched, where a device is used
    op_share: float | None = None  # part of such a step inside operators, in the census where it is largest
    mode_share: float | None = None  # part of such a step in torch's dispatch modes, but for what they call
    making_share: float | None = None  # part of such a step in operators that make its batch, on the training thread
    conv_per_step: float | None = None  # convolutions, forward and backward
    accumulated_share: float | None = None  # part of `op_ms` in adding gradients up
    thin: tuple[ThinProducts, ...] = ()  # fewest rows first
    table_share: float | None = None  # part of `op_ms` in gradients of lookup tables that hold all of their rows
    double_share: float | None = None  # part of `op_ms` in operators that compute in float64, with their backward
    double_at: Location | None = None  # the owner's line that goes over to float64
    set_up: float | None = None  # convolutions of a step, forward, that took much longer than the same once more; on a CPU
    setup_ms: float | None = None  # and how much longer, in a step


@dataclass(frozen=True)
class Updates:
    """How the program updates its parameters."""

    optimizer: str  # class name of the costliest
    location: Location | None  # where the owner constructs it
    fused: bool | None
    foreach: bool | None
    tensors: int  # parameters in its groups
    elements: int
    optimizers: int
    backwards_per_step: float  # gradient accumulation where above 1 with one optimizer
    micro_batch: int | None  # leading dimension of a root's first input in training; of functions alone, rows of their products
    zero_to_none: bool | None = None
    grad_scaler: bool = False
    package: str | None = None  # top-level package whose code makes the update: "torch", or a library's, or the program's own
    graded: int | None = None  # elements of the trained networks that get gradients
    unheld: int | None = None  # those of them that no optimizer holds
    first_unheld: str | None = None  # name of the first such parameter


@dataclass(frozen=True)
class Parts:
    """A batch that goes through the network in parts of one shape, call by call, before one backward."""

    location: Location  # the owner's line that calls the network
    calls: int  # in a step
    rows: int  # of a part


@dataclass(frozen=True)
class Numerics:
    """Number formats and layouts of training."""

    parameter_dtype: str  # e.g. float32
    autocast: str | None  # dtype inside autocast during training forwards; None: not used
    matmul_precision: str | None  # torch.get_float32_matmul_precision()
    tf32_matmul: bool | None
    tf32_cudnn: bool | None
    capability: tuple[int, int] | None  # of the CUDA device
    bf16_supported: bool | None
    cudnn_benchmark: bool | None
    deterministic: bool
    convolutions: int  # Conv2d and Conv3d modules in trained roots
    channels_last: bool | None  # layout of 4-d inputs of the roots; None: none seen
    compiled: bool  # torch.compile is used
    chosen_at: Location | None = None  # the owner's line that chose the format of the parameters: torch's default, or the network's own
    turned: str | None = None  # the largest weight whose rows do not lie one behind the other in memory, with its shape
