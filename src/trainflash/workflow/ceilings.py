"""Ceilings: how much faster would the program be without a cost? Measured in throw-away runs of the unmodified program.

Where results can be replayed, one run alternates blocks of live and of replayed steps, and what is replayed is what the finding is
about: the function that repeats itself, the samples, the joined batches, a setting. Work that stands apart from a step (evaluation,
checkpoints, logging, collections, the owner's own code that does not repeat itself) needs no replay: its measured, exclusive time is
subtracted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trainflash import launch, redact, trace
from trainflash.errors import TrainFlashError
from trainflash.schema import Command, Diagnosis, Finding, LoaderFacts, Summary, WhatIf, read_document, write_document
from trainflash.schema.ceilings import Ceilings, Unmeasured
from trainflash.workflow import replay_blocks
from trainflash.workflow.replay_blocks import Block, Estimate
from trainflash.workflow.session import Session

FILE = "ceilings.json"
MOST_REPLAYS = 3  # later findings cannot pay for a run of their own
TOTAL_S = 90.0  # for all replays together
EACH_S = 30.0  # of blocks for one replay
WORKERS_S = 50.0  # the same where workers fetch: only wall time holds there, and it is noisier
LEAST_S = 10.0  # less is not worth a start
BLOCK_S = (0.1, 0.4)  # shorter blocks measure the switch, longer ones the weather; the least only where the program is short
BLOCKS = 40  # what a short program should have room for
COLLECT_S = 7.0  # the probe keeps results for at most so long
ENOUGH_PAIRS, ENOUGH = 8, 0.025  # stop when the half-width of the interval is so small; it cannot fall below 0.02 with 8 pairs
TOO_WIDE = 0.14  # a ceiling known to ± 15 % at worst
RUNS = 2  # processes for one replay: what stays for the life of one (memory layout, the neighbours' minute) shifts all its blocks
SHORT_RUNS = 3  # how often a program that ends by itself is started to get enough pairs
BATCHES_KEPT = 32  # different results of a data function for equal arguments
SAME_WORK = 0.6  # part of the input's cost that repeated work must explain, so that replaying it alone shows the whole
SETTLE = 2  # steps after a switch that are not measured; workers' queues on top
GIVE_UP_S = 120.0

SUBTRACTED = {"evaluation": "Eval", "checkpoint": "Ckpt", "logging": "Log", "worker_startup": "", "garbage_collection": "", "host_code": ""}
INPUT = ("input_cpu", "input_io", "input_tail")


@dataclass(frozen=True)
class Replay:
    """One throw-away run: what is replaced there, and the findings that it belongs to; `at` and `value` as the probe takes them."""

    replay: str
    replaced: str
    findings: tuple[Finding, ...]
    at: tuple[str, int, str] | None = None
    value: int | None = None

    def specification(self, loader: LoaderFacts | None, block_s: float) -> str:
        """For the probe, in JSON."""
        workers = loader.num_workers if loader is not None else 0
        queue = workers * ((loader.prefetch_factor or 2) + 1) if loader is not None else 0
        plain = {"replay": self.replay, "at": self.at, "value": self.value, "settle": SETTLE + queue, "block_s": round(block_s, 3)}
        return json.dumps(plain)


@dataclass
class _Tally:
    """What all runs of one ceiling have shown so far."""

    what_if: list[WhatIf] = field(default_factory=list)
    unmeasured: list[Unmeasured] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)


def measure(
    session: Session,
    command: Command,
    run_dir: Path,
    diagnosis: Diagnosis,
    summary: Summary,
    *,
    in_place: bool = False,
    online: bool = False,
    writable: tuple[str, ...] = (),
    total_s: float = TOTAL_S,
) -> Ceilings:
    """Measure what can be measured for the findings of `run_dir`, and leave `ceilings.json` there.

    A replay that fails, is too noisy or finds no time stands among the unmeasured with its reason; the finding then keeps its bound.
    """
    began = time.monotonic()
    tally = _Tally()
    rank = trace.load(run_dir).ranks[0]
    replays = planned(diagnosis, summary)
    for finding in diagnosis.findings:
        if finding.kind in SUBTRACTED and not any(finding in replay.findings for replay in replays):
            tally.what_if.append(subtracted(finding, rank, summary))
    options = {"in_place": in_place, "online": online, "writable": writable}
    for replay in replays:
        left = total_s - (time.monotonic() - began)
        if summary.ranks > 1:
            found: Estimate | str = "several processes train"
        elif left < LEAST_S:
            found = f"no time was left of {total_s:.0f} s"
        else:
            found = _measured(session, command, replay, summary, left, options, tally)
        for finding in replay.findings:
            if isinstance(found, str) and finding.kind in SUBTRACTED:
                tally.what_if.append(subtracted(finding, rank, summary))
            elif isinstance(found, str):
                tally.unmeasured.append(Unmeasured(finding.kind, finding.location, found))
            else:
                what_if = WhatIf(finding.kind, replay.replaced, finding.location, found.speedup, found.low, found.high, 2 * found.pairs)
                tally.what_if.append(what_if)
    ceilings = Ceilings(run_dir.name, tuple(tally.what_if), tuple(tally.unmeasured), tuple(tally.runs), round(time.monotonic() - began, 1))
    write_document(run_dir / FILE, ceilings)
    return ceilings


def recorded(run_dir: Path) -> Ceilings | None:
    """What was measured for the diagnosis in `run_dir`, if anything."""
    path = run_dir / FILE
    return read_document(Ceilings, path) if path.is_file() else None


def notes(ceilings: Ceilings | None) -> tuple[str, ...]:
    """For a person: which ceilings stay bounds, and why."""
    unmeasured = ceilings.unmeasured if ceilings is not None else ()
    return tuple(f"the ceiling of {each.kind} was not measured and stays a bound: {each.reason}" for each in unmeasured)


def planned(diagnosis: Diagnosis, summary: Summary) -> tuple[Replay, ...]:
    """The replays of the first findings that have one, costliest first; findings that one replay answers share it."""
    replays: dict[tuple, Replay] = {}
    for finding in diagnosis.findings:
        replay = _replay_of(finding, diagnosis, summary)
        if replay is None:
            continue
        key = (replay.replay, replay.at)
        before = replays[key].findings if key in replays else ()
        if before or len(replays) < MOST_REPLAYS:
            replays[key] = Replay(replay.replay, replay.replaced, (*before, finding), replay.at, replay.value)
    return tuple(replays.values())


def _replay_of(finding: Finding, diagnosis: Diagnosis, summary: Summary) -> Replay | None:
    """What has to be replaced so that the what-if equals the fix of this finding; None: no replay shows it."""
    if finding.kind == "repeated_work" and finding.location is not None:
        return _function(finding, finding, 1)
    if finding.kind in (*INPUT, "collate", "host_code"):
        repeated = [each for each in diagnosis.findings if each.kind == "repeated_work" and each.phase == finding.phase and each.location]
        if repeated and repeated[0].share >= SAME_WORK * finding.share:
            return _function(finding, repeated[0], 1)
    if finding.kind in (*INPUT, "collate"):
        loader = summary.busiest_loader("train")
        if loader is not None:
            return Replay("collated", "collated", (finding,)) if finding.kind == "collate" else Replay("samples", "samples", (finding,))
        if summary.data_function is not None:
            place = summary.data_function
            at = (place.file, place.line, place.function)
            return Replay("function", place.function, (finding,), at, BATCHES_KEPT)
    if finding.kind == "debug_api" and any(setting.name == "anomaly_mode" for setting in summary.settings):
        return Replay("anomaly", "anomaly_mode", (finding,))
    if finding.kind == "thread_oversubscription" and summary.threads is not None and summary.threads.cpus:
        cpus = max(1, int(summary.threads.cpus / max(1, summary.ranks)))
        return Replay("threads", "torch_threads", (finding,), value=cpus)
    if finding.kind == "recompute" and finding.phase == "Bwd":
        return Replay("checkpointing", "activation checkpointing", (finding,))
    return None


def _function(finding: Finding, repeated: Finding, each: int) -> Replay:
    place = repeated.location
    return Replay("function", place.function, (finding,), (place.file, place.line, place.function), each)


def subtracted(finding: Finding, rank: trace.RankTrace, summary: Summary) -> WhatIf:
    """The speed-up when the finding's measured time is gone; rare work by its cost and its cadence, so that no chance count matters."""
    share = min(max(finding.share, 0.0), 0.99)
    speedup = 1 / (1 - share)
    name = SUBTRACTED[finding.kind]
    if name in rank.phase_ns:
        first = min(summary.warmup_steps, rank.steps)
        cost, wall = rank.phase_ns[name][first:], rank.wall_ns[first:]
        steps = cost.nonzero()[0]
        if len(steps) >= replay_blocks.LEAST_OCCURRENCES and cost.sum() < wall.sum():
            per_step = float(cost[steps].mean()) * (len(steps) - 1) / float(steps[-1] - steps[0])
            rest = float((wall - cost).mean())
            speedup = (rest + per_step) / rest
    return WhatIf(finding.kind, "its measured time", finding.location, speedup, None, None, 0)


def _measured(
    session: Session, command: Command, replay: Replay, summary: Summary, seconds: float, options: dict, tally: _Tally
) -> Estimate | str:
    """The estimate of one replay in at most `seconds`, or why there is none."""
    loader = summary.busiest_loader("train")
    alone = summary.device == "cpu" and (loader is None or not loader.num_workers)
    periodic = sum(summary.phases[name].share for name in replay_blocks.PERIODIC if name in summary.phases)
    blocks_s = WORKERS_S if loader is not None and loader.num_workers else EACH_S
    begin_s = (summary.startup_s or 0.0) + COLLECT_S / 2
    deadline = time.monotonic() + min(seconds, blocks_s + RUNS * begin_s)
    runs: list[tuple[Block, ...]] = []
    found: Estimate | None = None
    for n in range(SHORT_RUNS):
        left = deadline - time.monotonic()
        if n >= RUNS and found is not None and (found.half <= ENOUGH or found.pairs >= ENOUGH_PAIRS or left < LEAST_S):
            break
        if left < LEAST_S / 2:
            break
        seconds = max(LEAST_S / 2, left / max(1, RUNS - n) - begin_s)
        run_dir = session.new_run("ceiling")
        tally.runs.append(run_dir.name)
        try:
            blocks = _run(session, command, replay, summary, run_dir, seconds, options, alone)
        except TrainFlashError as failed:
            return failed.message
        if isinstance(blocks, str):
            return blocks
        runs.append(blocks)
        found = replay_blocks.estimate(runs, alone=alone, periodic_share=periodic)
    if found is None:
        pairs = sum(len(blocks) // 2 for blocks in runs)
        return f"{pairs} pairs of blocks, at least {replay_blocks.LEAST_PAIRS} are needed: the program is too short or its steps too long"
    if found.half > TOO_WIDE:
        return f"too noisy: {found.speedup:.2f} [{found.low:.2f}, {found.high:.2f}] after {found.pairs} pairs of blocks"
    return found


def _run(
    session: Session,
    command: Command,
    replay: Replay,
    summary: Summary,
    run_dir: Path,
    seconds: float,
    options: dict,
    alone: bool,
) -> tuple[Block, ...] | str:
    """The blocks of one throw-away run, or why there are none."""
    startup = summary.startup_s or 0.0
    length = summary.wall_s - startup
    block_s = BLOCK_S[1] if summary.stopped else min(BLOCK_S[1], max(BLOCK_S[0], length / BLOCKS))
    record = launch.run(
        session.sandbox,
        "candidate",
        command,
        run_dir,
        capture="timing",
        replay=replay.specification(summary.busiest_loader("train"), block_s),
        max_seconds=startup + COLLECT_S + seconds,
        timeout=GIVE_UP_S + startup + COLLECT_S + seconds,
        redact=redact.text,
        on_step=_watch(session, replay, run_dir, alone),
        **options,
    )
    blocks, error = replay_blocks.read(run_dir)
    if error:
        return error
    if record.status not in ("finished", "stopped"):
        last = record.output_tail.strip().splitlines()[-1:]
        return f"the program failed under replay: {' '.join(last)[:200]}"
    if not blocks:
        return "the program ended before anything could be replayed"
    return replay_blocks.with_periodic(blocks, trace.load(run_dir).ranks[0])


def _watch(session: Session, replay: Replay, run_dir: Path, alone: bool) -> Callable[[int], None]:
    """Shows progress, and asks the run to end once the interval is narrow."""
    kinds = ", ".join(dict.fromkeys(finding.kind for finding in replay.findings))
    label = f"ceiling of {kinds} ({replay.replaced} replayed), pairs of blocks"
    session.on_progress(label, 0, 0)

    def on_step(_: int) -> None:
        blocks, _error = replay_blocks.read(run_dir)
        session.on_progress(label, len(blocks) // 2, 0)
        found = replay_blocks.estimate([blocks], alone=alone)
        if found is not None and found.pairs >= ENOUGH_PAIRS and found.half <= ENOUGH:
            (run_dir / "replay-stop").touch()

    return on_step
