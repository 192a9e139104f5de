"""What the performance gate measures: `gate_env.v1` (env.json), `gate_metrics.v1` (metrics.json), `gate_eval.v1` (eval.json).

`None` means not measured. Nothing in `env.json` and `eval.json` depends on the moment: the same machine, commit and model give the same
bytes. History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from trainflash.schema.runs import Location

BenchMode = Literal["e2e", "synthetic"]
BenchSource = Literal["program", "step_function"]


@dataclass(frozen=True)
class Accelerator:
    """One accelerator that torch may use here, in torch's order."""

    kind: Literal["cuda", "rocm", "mps"]
    name: str  # as the driver says it, e.g. "NVIDIA H100 80GB HBM3"
    capability: str | None  # "sm90", "gfx942"; None: it has none
    memory_bytes: int | None
    mig: str | None = None  # the slice, e.g. "1g.10gb"


@dataclass(frozen=True)
class GateEnv:
    """`env.json`: the machine and the software that a benchmark ran on. `machine_profile` keys the baselines."""

    SCHEMA: ClassVar[str] = "gate_env.v1"
    machine_profile: str  # e.g. "H100x8_driver550_cuda12.4_torch2.4_sm90"
    os: str
    kernel: str
    arch: str
    cpu: str | None
    cpu_capability: str | None  # of torch's kernels, e.g. "AVX512"
    cores: int | None  # of the machine
    cpu_budget: float | None  # cores that this process may use: affinity and quota, the smaller
    cpu_quota: float | None  # the container's; None: no quota
    memory_bytes: int | None  # the machine's
    memory_limit_bytes: int | None  # the container's; None: no limit
    container: bool
    accelerators: tuple[Accelerator, ...]
    driver: str | None
    cuda: str | None  # that torch was built for
    rocm: str | None
    cudnn: str | None
    nccl: str | None
    python: str
    torch: str | None  # None: not importable in the program's interpreter
    torch_commit: str | None
    torch_threads: int | None
    interop_threads: int | None
    packages: dict[str, str] = field(default_factory=dict)  # of those that make a training faster or slower
    variables: dict[str, str] = field(default_factory=dict)  # environment variables that do, redacted
    commit: str | None = None  # of the project; None: no git, or no commit yet
    dirty: bool | None = None  # tracked files differ from the commit, or files are there that git does not know


@dataclass(frozen=True)
class StepTimes:
    """One repeat: every measured step, in order, milliseconds; `world_size` processes. The unit of statistics is the repeat."""

    step_ms: tuple[float, ...]
    memory_peak_bytes: int | None = None
    losses: tuple[tuple[int, float], ...] = ()  # (index into `step_ms`, loss) of the steps whose loss was seen


@dataclass(frozen=True)
class GatePhase:
    """One phase of the step, mean milliseconds a step and share of the wall time."""

    mean_ms: float
    share: float


@dataclass(frozen=True)
class GateLine:
    """One line of the owner's source and what it costs, milliseconds a step."""

    location: Location
    phase: str
    mean_ms: float


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of one step, all processes together, and what the machine could do; MFU is of the p50 step."""

    estimator: str  # "6ND" or "transformer_aware"
    per_step: float | None
    counted_per_step: float | None  # by torch's own FLOP counter; None: not counted
    parameters: int | None
    non_embedding_parameters: int | None
    achieved_tflops: float | None
    peak_tflops: float | None  # of one accelerator
    peak_source: str | None  # where that figure stands, or "given"
    dtype: str | None
    mfu_mean: float | None
    reason: str = ""  # why a figure is missing


@dataclass(frozen=True)
class Scaling:
    """`efficiency` = tokens (else samples) a second of `world_size` processes ÷ (`world_size` × those of one), both p50."""

    world_size: int
    efficiency: float | None
    throughput_one: float | None
    throughput_all: float | None
    unit: Literal["tokens", "samples", "steps"]


@dataclass(frozen=True)
class Stall:
    """What waiting for data costs: steps with the real loader against steps with replayed batches, in alternating blocks, p50, ms."""

    e2e_ms: float
    synthetic_ms: float
    share: float  # 1 − synthetic ÷ e2e, from the pairs of blocks
    share_low: float
    share_high: float
    limit: float
    alert: bool  # the whole interval lies above the limit


@dataclass(frozen=True)
class GateMetrics:
    """`metrics.json`: how fast the training runs. Means and percentiles are over the measured steps of all repeats."""

    SCHEMA: ClassVar[str] = "gate_metrics.v1"
    machine_profile: str
    commit: str | None
    dirty: bool | None
    source: BenchSource
    command: tuple[str, ...]  # of a program, redacted; of a step function FILE:FUNCTION
    mode: BenchMode
    world_size: int
    warmup_steps: int
    measure_steps: int
    repeats: tuple[StepTimes, ...]
    step_time_mean_ms: float
    step_time_p50_ms: float | None
    step_time_p90_ms: float | None
    tokens_per_step: float | None  # all processes together
    samples_per_step: float | None
    tokens_from: str | None  # "given", or how they were counted
    tokens_per_sec_mean: float | None
    tokens_per_sec_p50: float | None
    tokens_per_sec_p10: float | None
    samples_per_sec_mean: float | None
    samples_per_sec_p50: float | None
    samples_per_sec_p10: float | None
    memory_peak_bytes: int | None  # the repeat with most, of the process with most
    memory_of: Literal["device", "host"] | None
    loss_slope: float | None  # least squares over the measured steps, change of the loss a step
    loss_first: float | None
    loss_last: float | None
    mfu_p50: float | None
    flops: Flops | None = None
    scaling: Scaling | None = None
    stall: Stall | None = None
    phases: dict[str, GatePhase] = field(default_factory=dict)
    lines: tuple[GateLine, ...] = ()  # costliest first
    profile_dir: str | None = None
    regions: tuple[str, ...] = ()  # of data, forward, loss, backward, optimizer_step, grad_sync: those that the traces hold
    notes: tuple[str, ...] = ()  # what a reader of the figures must know


@dataclass(frozen=True)
class ProbeScore:
    """One task probe. `accuracy` in per cent; `failed` names the items that were answered wrongly."""

    name: str
    accuracy: float
    correct: int
    total: int
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnMetric:
    """A figure of the owner's own evaluation: the last value that `text` (as for `--metric`) finds in what it printed or wrote."""

    text: str
    value: float
    better: Literal["lower", "higher"]
    values: int  # how many it found


@dataclass(frozen=True)
class GateEval:
    """`eval.json`: how good the model is, on fixed data, greedily. Byte-stable: figures have six significant digits."""

    SCHEMA: ClassVar[str] = "gate_eval.v1"
    machine_profile: str
    commit: str | None
    dirty: bool | None
    model: str  # the adapter's own description, or the owner's command, redacted
    seed: int | None  # None: the owner's own evaluation, whose streams are its own
    temperature: float | None
    shard_sha256: str | None = None
    tokenizer: str | None = None
    max_tokens: int | None = None  # a window of the shard holds this many at most
    tokens: int | None = None  # that were scored
    loss: float | None = None  # mean negative log-likelihood a token, nats
    perplexity: float | None = None
    probes: tuple[ProbeScore, ...] = ()
    metrics: tuple[OwnMetric, ...] = ()
    notes: tuple[str, ...] = ()
