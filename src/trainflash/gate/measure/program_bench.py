"""What the probe saw of an unmodified program → figures of a benchmark. One run with facts, one for each repeat that is timed only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainflash.errors import UsageError
from trainflash.fidelity import work as seen_work
from trainflash.gate.measure.flops import Work
from trainflash.schema import GateLine, GatePhase, StepTimes, Summary
from trainflash.trace import RankTrace, Trace

MOST_LINES = 12
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class ProgramFacts:
    """What one run with facts told. `work` and `samples` are of one step of one process, in the mean of the ranks."""

    work: Work
    samples: float | None
    dtype: str | None
    device: str
    memory_peak_bytes: int | None
    memory_of: str | None
    phases: dict[str, GatePhase]
    lines: tuple[GateLine, ...]
    scaled_losses: bool
    has_loader: bool
    notes: tuple[str, ...]


def facts_of(trace: Trace, summary: Summary) -> ProgramFacts:
    """The facts of a run that was captured with them."""
    first = trace.ranks[0]
    computing = first.computing
    sizes = [rank.computing.sizes for rank in trace.ranks if rank.computing is not None and rank.computing.sizes is not None]
    whole = len(sizes) == len(trace.ranks)
    tokens, samples = (_mean([getattr(size, name) for size in sizes]) if whole else None for name in ("tokens", "samples"))
    size = sizes[0] if sizes else None
    notes = [] if whole else ["parameters, samples and tokens were not seen: the loss does not come from an nn.Module"]
    memory = summary.memory
    on_device = memory is not None and memory.device_peak_bytes is not None
    step_ms = summary.step_ms.mean_ms
    return ProgramFacts(
        work=Work(
            tokens=tokens,
            parameters=size.parameters or None if size else None,
            non_embedding=size.parameters - size.embedding or None if size else None,
            multiplying=size.multiplying or None if size else None,
        ),
        samples=samples,
        dtype=_dtype(summary),
        device=first.device,
        memory_peak_bytes=None if memory is None else memory.device_peak_bytes if on_device else memory.host_peak_bytes,
        memory_of=None if memory is None else "device" if on_device else "host" if memory.host_peak_bytes is not None else None,
        phases={name: GatePhase(stat.mean_ms, stat.share) for name, stat in summary.phases.items()},
        lines=tuple(GateLine(line.location, line.phase, line.share * step_ms) for line in summary.lines if line.role == "main")[
            :MOST_LINES
        ],
        scaled_losses=bool(computing is not None and computing.updates is not None and computing.updates.grad_scaler),
        has_loader=any(loader.role == "train" for loader in first.loaders),
        notes=tuple(notes),
    )


def timed(trace: Trace, run_dir: Path, warmup: int, measure: int, *, losses: bool) -> StepTimes:
    """The measured steps of one timed run; of several ranks each step's slowest. Raises `UsageError` where too few steps were made."""
    walls = [rank.wall_ns for rank in trace.ranks]
    steps = min(map(len, walls))
    if steps <= warmup:
        raise UsageError(
            f"the program made {steps} steps, and {warmup} of them are warm-up: nothing was measured",
            "give fewer with --warmup, or let the program train longer",
        )
    until = min(steps, warmup + measure)
    slowest = np.max([wall[warmup:until] for wall in walls], axis=0) / _NS_PER_MS
    rank = trace.ranks[0].rank
    seen = seen_work.read(run_dir) if losses else {}
    found = tuple(
        (step - warmup, float(sum(each["losses"])))
        for (of_rank, step), each in sorted(seen.items())
        if of_rank == rank and warmup <= step < until and each["losses"]
    )
    return StepTimes(tuple(float(step) for step in slowest), None, found)


def blocks(rank: RankTrace, spans: Sequence[tuple[str, int, int]]) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """(live, replayed) steps in milliseconds, one tuple a block; `spans`: (mode, first step, steps), in pairs."""
    found: dict[str, list[tuple[float, ...]]] = {"live": [], "replay": []}
    for mode, first, steps in spans:
        found[mode].append(tuple(float(step) for step in rank.wall_ns[first : first + steps] / _NS_PER_MS))
    return tuple(found["live"]), tuple(found["replay"])


def with_processes(argv: Sequence[str], processes: int) -> tuple[str, ...]:
    """`argv` started on so many processes of this machine: a torchrun's own count is changed, a plain `python SCRIPT` gets one.

    Raises `UsageError` for another launcher, whose options are its own.
    """
    words = list(argv)
    name = Path(words[0]).name
    torchrun = name == "torchrun" or words[1:3] == ["-m", "torch.distributed.run"]
    if torchrun:
        for at, word in enumerate(words):
            flag, _, value = word.partition("=")
            if flag.replace("_", "-") == "--nproc-per-node":
                words[at : at + (1 if value else 2)] = [f"--nproc-per-node={processes}"]
                return tuple(words)
        at = 1 if name == "torchrun" else 3
        return (*words[:at], f"--nproc-per-node={processes}", *words[at:])
    if name.startswith(("python", "pypy")) and len(words) > 1 and words[1].endswith(".py"):
        return (words[0], "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", *words[1:])
    raise UsageError(f"how {name} is started on {processes} processes is not known", "give its own launcher, and no --world-size")


def _mean(values: Sequence[float | None]) -> float | None:
    return None if not values or any(value is None for value in values) else sum(values) / len(values)  # type: ignore[arg-type]


def _dtype(summary: Summary) -> str | None:
    numerics = summary.numerics
    if numerics is None:
        return None
    if numerics.autocast:
        return numerics.autocast
    tf32 = numerics.parameter_dtype == "float32" and (numerics.tf32_matmul or numerics.matmul_precision in ("high", "medium"))
    return "tfloat32" if tf32 and summary.device.startswith("cuda") else numerics.parameter_dtype
