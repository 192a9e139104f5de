"""Synthetic traces for summary tests: one rank whose steps take the given milliseconds, everything else added by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainflash.schema import PHASES, Location
from trainflash.trace import Fetches, LoaderTrace, Occurrences, RankTrace, RepeatedCall, Samples, Trace, WorkerTrace

MS = 1_000_000
START_NS = 50_000 * MS  # the first step begins two seconds after the process
PID = 100


def ns(values_ms) -> np.ndarray:
    return (np.asarray(values_ms, dtype=float) * MS).astype(np.int64)


def rank(step_ms, phases: dict[str, float | list], **changes) -> RankTrace:
    """A rank whose phase takes a fixed part of each step (a number) or these milliseconds (a list); Other takes the rest."""
    wall = ns(step_ms)
    columns = {}
    for name, cost in phases.items():
        columns[name] = ns(cost) if isinstance(cost, list) else (wall * cost).astype(np.int64)
    columns["Other"] = wall - sum(columns.values(), start=np.zeros_like(wall))
    starts = START_NS + np.concatenate(([0], np.cumsum(wall)))
    occurrences = {name: each_step(starts, column) for name, column in columns.items() if name != "Other"}
    plain = RankTrace(
        pid=PID,
        rank=0,
        world_size=1,
        argv=("train.py",),
        process_start_ns=START_NS - 2000 * MS,
        end_ns=int(starts[-1]) + 500 * MS,
        step_start_ns=starts,
        phase_ns=columns,
        occurrences=occurrences,
        samples=no_samples(),
        device="cpu",
        epochs=None,
        epoch_at_ns=np.zeros(0, dtype=np.int64),
    )
    return replace(plain, **changes)


def trace(only: RankTrace, *workers: WorkerTrace, **changes) -> Trace:
    return replace(Trace(run_dir="/runs/1", ranks=(only,), workers=workers), **changes)


def each_step(starts: np.ndarray, spent: np.ndarray) -> Occurrences:
    """One occurrence at the begin of each step that has the phase."""
    has = spent > 0
    begin = starts[:-1][has]
    return Occurrences(begin, begin + spent[has], spent[has], np.flatnonzero(has))


def no_samples() -> Samples:
    none = np.zeros(0, dtype=np.int64)
    return Samples(none, none, none, none, none, ())


def samples(only: RankTrace, rows: list[tuple[int, str, Location | None, float]]) -> Samples:
    """Samples from (step, phase, line, milliseconds)."""
    places = tuple(dict.fromkeys(line for _, _, line, _ in rows if line is not None))
    step = np.array([row[0] for row in rows])
    return Samples(
        t_ns=only.step_start_ns[np.clip(step, 0, only.steps - 1)],
        weight_ns=ns([row[3] for row in rows]),
        place=np.array([-1 if row[2] is None else places.index(row[2]) for row in rows]),
        phase=np.array([PHASES.index(row[1]) for row in rows]),
        step=step,
        locations=places,
    )


def fetches(starts: np.ndarray, getitem_ms: float, collate_ms: float, cpu: float) -> Fetches:
    n = len(starts)
    return Fetches(starts, ns([getitem_ms] * n), ns([collate_ms] * n), ns([cpu * (getitem_ms + collate_ms)] * n))


def loader(iter_at: list[int], made: Fetches, **changes) -> LoaderTrace:
    n = len(iter_at)
    plain = LoaderTrace(
        id=0,
        role="train",
        location=Location("train.py", 40, "main"),
        num_workers=0,
        batch_size=32,
        persistent_workers=False,
        pin_memory=False,
        prefetch_factor=None,
        shuffles=True,
        own_generator=False,
        iterable=False,
        drop_last=False,
        dataset="Digits",
        dataset_location=Location("data.py", 10, "Digits.__getitem__"),
        collate_location=None,
        dataset_len=640,
        sample_bytes=256,
        iter_at_ns=np.asarray(iter_at, dtype=np.int64),
        iter_ns=ns([1.0] * n),
        first_batch_ns=ns([2.0] * n),
        batches=len(made.start_ns),
        wait_ns=made.getitem_ns + made.collate_ns,
        fetches=made,
    )
    return replace(plain, **changes)


def call(**changes) -> RepeatedCall:
    plain = RepeatedCall(
        location=Location("data.py", 30, "render"),
        qualname="render",
        role="main",
        where="fetch",
        caller="",
        calls=100,
        repeats=50,
        distinct=50,
        inclusive_ns=80 * MS,
        repeat_ns=40 * MS,
        window_ns=100 * MS,
        hashable=True,
        is_method=False,
        result_bytes=256,
        comparable=changes.get("calls", 100),
    )
    return replace(plain, **changes)


def worker(made: Fetches, pid: int = 200, **changes) -> WorkerTrace:
    return replace(
        WorkerTrace(pid=pid, parent=PID, loader=0, process_start_ns=START_NS, fetches=made, samples=no_samples()),
        **changes,
    )
