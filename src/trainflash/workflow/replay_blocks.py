"""Blocks of live and of replayed steps → how much faster steps are without the cost."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import stats
from trainflash.trace import RankTrace

PERIODIC = ("Eval", "Ckpt")  # rare and long: a block holds none or one by chance, so they are taken out and added on average
LEAST_OCCURRENCES = 3  # of them in either mode, before their cost is taken from the blocks
NET_CPU_LIMIT = 1.1  # more CPU than 1.1 × net time: the process's own threads compete for cores, and that wait is its cost
LEAST_PAIRS = 4  # as many as starts of a comparison
TRIM_PAIRS = 5  # fewer have nothing to trim


@dataclass(frozen=True)
class Block:
    """Some steps in one mode. Nanoseconds; `runq_ns`: without a core, None where the kernel does not tell."""

    mode: str  # "live" or "replay"
    first: int  # steps complete before it
    steps: int
    wall_ns: int
    runq_ns: int | None
    cpu_ns: int  # of the training process
    periodic_ns: int = 0
    occurrences: int = 0  # steps with periodic work


@dataclass(frozen=True)
class Estimate:
    """The speed-up of a step, with the ends of its interval; `half` is the half-width in log units."""

    speedup: float
    low: float
    high: float
    half: float
    pairs: int


def read(run_dir: Path) -> tuple[tuple[Block, ...], str]:
    """The blocks that a run wrote so far, and why there are none where the probe says so."""
    blocks, error = [], ""
    path = run_dir / "replay-blocks.jsonl"
    for line in path.read_text(encoding="ascii").splitlines() if path.is_file() else ():
        try:
            plain = json.loads(line)
        except ValueError:
            continue  # cut short
        if "error" in plain:
            error = str(plain["error"])
        else:
            blocks.append(Block(**plain))
    return tuple(blocks), error


def with_periodic(blocks: Sequence[Block], rank: RankTrace) -> tuple[Block, ...]:
    """The blocks with what evaluations and checkpoints took in them."""
    columns = [rank.phase_ns[name] for name in PERIODIC if name in rank.phase_ns]
    found = []
    for block in blocks:
        span = slice(block.first, block.first + block.steps)
        each = [sum(int(column[i]) for column in columns) for i in range(*span.indices(rank.steps))]
        periodic = min(sum(each), block.wall_ns - 1)
        found.append(replace(block, periodic_ns=periodic, occurrences=sum(1 for ns in each if ns)))
    return tuple(found)


def estimate(runs: Sequence[Sequence[Block]], *, alone: bool, periodic_share: float = 0.0) -> Estimate | None:
    """The estimate from the blocks of one or more runs; None for fewer than four pairs.

    Each pair of neighbours gives y = log(live ÷ replayed time of a step) without evaluations and checkpoints; they are added again at
    their mean cost, or at `periodic_share` of the wall time where the blocks hold too few of them. `alone`: the training process works
    alone on a CPU, so that time without a core is the machine's and not the program's.
    """
    pairs = [pair for blocks in runs for pair in zip(blocks[::2], blocks[1::2], strict=False) if pair[0].mode != pair[1].mode]
    if len(pairs) < LEAST_PAIRS:
        return None
    counted = [block for pair in pairs for block in pair]
    net = alone and _net_holds(counted)
    ys = []
    for pair in pairs:
        live, replayed = pair if pair[0].mode == "live" else pair[::-1]
        ys.append(math.log(_core_ns(live, net) / live.steps) - math.log(_core_ns(replayed, net) / replayed.steps))
    half = stats.interval(ys).half
    mean = stats.trimmed_mean(ys) if len(ys) >= TRIM_PAIRS else sum(ys) / len(ys)
    before, after = _periodic(counted, net, periodic_share)

    def speedup(y: float) -> float:
        return (1 + before) / (math.exp(-y) + after)

    return Estimate(speedup(mean), speedup(mean - half), speedup(mean + half), half, len(pairs))


def _net_holds(blocks: Sequence[Block]) -> bool:
    """Whether time without a core can be taken out: the kernel counts it, and one thread does the work, in both modes."""
    if any(block.runq_ns is None for block in blocks) or not sum(block.runq_ns or 0 for block in blocks):
        return False
    for mode in ("live", "replay"):
        mine = [block for block in blocks if block.mode == mode]
        if sum(block.cpu_ns for block in mine) > NET_CPU_LIMIT * sum(block.wall_ns - (block.runq_ns or 0) for block in mine):
            return False
    return True


def _core_ns(block: Block, net: bool) -> float:
    """Time of the block without periodic work; net: without the time without a core, which is spread evenly."""
    core = block.wall_ns - block.periodic_ns
    return core * (1 - (block.runq_ns or 0) / block.wall_ns) if net else core


def _periodic(blocks: Sequence[Block], net: bool, share: float) -> tuple[float, float]:
    """Periodic work per step in live and in replayed steps, as multiples of the rest of a live step."""
    per_step, core, seen = {}, {}, {}
    for mode in ("live", "replay"):
        mine = [block for block in blocks if block.mode == mode]
        steps = sum(block.steps for block in mine)
        core[mode] = sum(_core_ns(block, net) for block in mine) / steps
        whole = sum(_core_ns(block, net) * block.wall_ns / (block.wall_ns - block.periodic_ns) for block in mine) / steps
        per_step[mode] = whole - core[mode]
        seen[mode] = sum(block.occurrences for block in mine)
    if min(seen.values()) >= LEAST_OCCURRENCES:
        return per_step["live"] / core["live"], per_step["replay"] / core["live"]
    rest = share / (1 - share) if share < 1 else 0.0
    return rest, rest
