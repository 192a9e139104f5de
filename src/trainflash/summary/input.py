"""What DataLoaders were seen to do: making batches and single samples, beginning passes, and late batches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trainflash.schema import InputTail, LoaderFacts, SlowSample, Spread, WorkerMemory
from trainflash.summary.steady import NS_PER_MS, NS_PER_S, Steady, spread
from trainflash.trace import Fetches, LoaderTrace, RankTrace, SampleTimes, Trace

SLOW_TIMES = 4.0  # a sample is slow from four times the usual one, …
SLOW_PART = 0.25  # … when it is also at least this part of what its batch usually takes …
SLOW_LEAST_MS = 1.0  # … and long enough to be noticed
MOST_SLOW = 10
LATE_TIMES = 2.0  # a batch is late when the step waits for it twice as long as it usually takes without Data
LONG_LOG = 0.25  # part of a usual step; a step that logs longer than others by that is no ordinary one


def loader_facts(loader: LoaderTrace, trace: Trace, rank: RankTrace, part: Steady) -> LoaderFacts:
    """One `DataLoader` over the steady part, its batches made by any process together."""
    workers = [worker for worker in trace.workers if worker.parent == rank.pid and worker.loader == loader.id]
    made = _steady_fetches([loader.fetches, *(worker.fetches for worker in workers)], part)
    getitem, collate = made.getitem_ns, made.collate_ns
    times = [each.times for each in (loader, *workers) if each.times is not None]
    return LoaderFacts(
        id=loader.id,
        role=loader.role,
        location=loader.location,
        num_workers=loader.num_workers,
        batch_size=loader.batch_size,
        persistent_workers=loader.persistent_workers,
        pin_memory=loader.pin_memory,
        prefetch_factor=loader.prefetch_factor,
        shuffles=loader.shuffles,
        own_generator=loader.own_generator,
        iterable=loader.iterable,
        dataset=loader.dataset,
        dataset_location=loader.dataset_location,
        collate_location=loader.collate_location,
        collator_made_at=loader.collator_made_at,
        classes=loader.classes,
        dataset_len=loader.dataset_len,
        sample_bytes=loader.sample_bytes,
        epochs=len(loader.iter_at_ns),
        start_ms=spread(loader.iter_ns),
        first_batch_ms=spread(loader.first_batch_ns),
        getitem_ms=spread(getitem),
        collate_ms=spread(collate),
        fetch_cpu_share=_share(made, made.cpu_ns),
        runqueue_share=_share(made, made.runq_ns),
        slow_samples=_slow_samples(times, loader.batch_size or 1),
        batched=loader.batched or any(worker.batched for worker in workers),
        draws=_any([loader.draws, *(worker.draws for worker in workers)]),
        joined_at=next((each.joined_at for each in (loader, *workers) if each.joined_at is not None), None),
        starts=len(workers) // loader.num_workers if loader.num_workers and workers else None,
        wait_s=float(loader.wait_ns.sum()) / NS_PER_S,
        made_of_waited=_made_of_waited(loader, made),
        pass_ms=_passes(loader, rank, part),
    )


def _made_of_waited(loader: LoaderTrace, made: Fetches) -> float | None:
    """What the training process would need for a batch ÷ what it waits for one; the very first, for which workers start, is left out."""
    waits = loader.wait_ns[1:]
    if loader.num_workers == 0 or not len(made.getitem_ns) or not waits.any():
        return None
    return float((made.getitem_ns + made.collate_ns).mean() / waits.mean())


def _any(seen: list[bool | None]) -> bool | None:
    known = [each for each in seen if each is not None]
    return any(known) if known else None


def _share(made: Fetches, ns: np.ndarray) -> float | None:
    """Time on a core, or runnable without one, ÷ wall time of the fetches of which it is known."""
    known = ns >= 0
    wall = float((made.getitem_ns + made.collate_ns)[known].sum())
    return min(1.0, float(ns[known].sum()) / wall) if wall > 0 else None


def _slow_samples(times: list[SampleTimes], batch_size: int) -> tuple[SlowSample, ...]:
    """The slowest samples of a loader over all processes, each index once."""
    count = sum(each.count for each in times)
    if not count:
        return ()
    usual = sum(each.usual_ns * each.count for each in times) / count
    least = max(SLOW_TIMES * usual, SLOW_PART * usual * batch_size, SLOW_LEAST_MS * NS_PER_MS)
    merged: dict[int, tuple[int, int, str | None]] = {}
    for index, ns, seen, file in (row for each in times for row in each.slow):
        before = merged.get(index, (0, 0, None))
        merged[index] = (max(ns, before[0]), seen + before[1], file or before[2])
    slow = [
        SlowSample(index=index, file=file, ms=ns / NS_PER_MS, usual_ms=usual / NS_PER_MS, times=seen)
        for index, (ns, seen, file) in merged.items()
        if ns >= least
    ]
    return tuple(sorted(slow, key=lambda sample: -sample.ms)[:MOST_SLOW])


def input_tail(rank: RankTrace, part: Steady) -> InputTail | None:
    """Waiting for batches in ordinary steps. None where nothing was waited for."""
    data = rank.phase_ns.get("Data")
    if data is None or not data[part.kept].any():
        return None
    kept = part.kept[_ordinary(rank, part)]
    wait, wall = data[kept], rank.wall_ns[kept]
    found = spread(wait)
    if found is None:
        return None
    late = wait > LATE_TIMES * float((wall - wait).mean())
    usual = float(np.median(wait))
    return InputTail(wait_ms=found, late=int(late.sum()), late_share=float((wait[late] - usual).sum()) / part.wall_ns)


def _ordinary(rank: RankTrace, part: Steady) -> np.ndarray:
    """Which of the kept steps are like all others: no pass begins, nothing is evaluated or saved, and logging is as long as ever."""
    steps = part.kept
    begins = np.searchsorted(rank.step_start_ns, rank.epoch_at_ns, side="right") - 1
    ordinary = ~np.isin(steps, begins)
    for name in ("Eval", "Ckpt"):
        if name in rank.phase_ns:
            ordinary &= rank.phase_ns[name][steps] == 0
    if "Log" in rank.phase_ns:
        log = rank.phase_ns["Log"][steps]
        ordinary &= log <= np.median(log) + LONG_LOG * np.median(rank.wall_ns[steps])
    return ordinary


def _passes(loader: LoaderTrace, rank: RankTrace, part: Steady) -> Spread | None:
    """What beginning a pass costs beyond usual steps: the end of the workers before, starting new ones, and the first batch of each."""
    if loader.role != "train" or loader.num_workers == 0 or "Data" not in rank.phase_ns:
        return None
    data = rank.phase_ns["Data"]
    usual = float(np.median(data[part.first :]))
    begins = np.searchsorted(rank.step_start_ns, loader.iter_at_ns, side="right") - 1
    begins = begins[(begins >= part.first) & (begins < part.last)]
    spans = [data[begin : begin + loader.num_workers] for begin in begins]
    return spread(np.array([max(0.0, float(span.sum()) - usual * len(span)) for span in spans]))


def _steady_fetches(fetches: Iterable[Fetches], part: Steady) -> Fetches:
    """The batches made in the steady part; all batches where it has none (a late evaluation)."""
    each = list(fetches)
    unknown = [made.runq_ns if made.runq_ns is not None else np.full(len(made.start_ns), -1) for made in each]
    joined = [np.concatenate([getattr(made, name) for made in each]) for name in ("start_ns", "getitem_ns", "collate_ns", "cpu_ns")]
    kept = part.holds(joined[0])
    if not kept.any():
        kept = np.ones_like(kept)
    return Fetches(*(column[kept] for column in (*joined, np.concatenate(unknown))))


def worker_memory(trace: Trace, rank: RankTrace) -> WorkerMemory | None:
    """How the memory of this rank's workers grew while they made batches; of those that were asked twice at least."""
    seen = [worker.memory for worker in trace.workers if worker.parent == rank.pid and len(worker.memory) > 1]
    seen = [(readings[0], readings[-1]) for readings in seen if readings[-1].batches > readings[0].batches]
    if not seen:
        return None
    return WorkerMemory(
        workers=len(seen),
        first_bytes=float(np.mean([first.private for first, _ in seen])),
        last_bytes=float(np.mean([last.private for _, last in seen])),
        faults_per_batch=float(np.mean([(last.faults - first.faults) / (last.batches - first.batches) for first, last in seen])),
        system_share=float(np.mean([(last.system_ns - first.system_ns) / (last.t_ns - first.t_ns) for first, last in seen])),
    )
