"""Which of the owner's functions do the same work again, and what share of the wall time that is."""

from __future__ import annotations

from dataclasses import replace

from trainflash.schema import RepeatedWork
from trainflash.trace import RankTrace, RepeatedCall, Trace

NS_PER_MS = 1e6
LEAST_CALLS = 2
SUMMED = ("calls", "comparable", "repeats", "distinct", "inclusive_ns", "repeat_ns", "window_ns")
OFTEN = 0.2  # a function that repeats itself in fewer calls is no cause to drop the functions that it calls


def repeated_work(trace: Trace, rank: RankTrace, from_ns: int, to_ns: int, shares: dict[str, float]) -> tuple[RepeatedWork, ...]:
    """Functions seen to repeat work, costliest first; of nested ones the outermost that repeats itself and could be cached.

    The share is estimated: the part of the traced windows that calls of the function took, times the share of the steady wall time
    that those windows stand for. Windows in worker processes stand for the training process's waiting for them.
    """
    seen = list(rank.repeated)
    for worker in trace.workers:
        if worker.parent == rank.pid:
            seen += worker.repeated
    merged = _merge(seen)
    parts = _parts_of_fetching(trace, rank, from_ns, to_ns)
    samples = sum(loader.dataset_len or 0 for loader in rank.loaders)
    found = []
    for call in merged:
        if call.calls < LEAST_CALLS or call.repeats == 0 or call.window_ns <= 0 or _inside_another(call, merged):
            continue
        stands_for = _stands_for(call, parts, shares)
        found.append(
            RepeatedWork(
                location=call.location,
                qualname=call.qualname,
                role="worker" if call.role == "worker" else "main",
                calls=call.comparable,
                repeats=call.repeats,
                mean_ms=call.inclusive_ns / call.calls / NS_PER_MS,
                share=min(1.0, call.inclusive_ns / call.window_ns) * stands_for,
                hashable=call.hashable,
                is_method=call.is_method,
                result_bytes=call.result_bytes,
                distinct=max(call.distinct, samples) if call.comparable < call.calls else call.distinct,
                during=call.where,
            )
        )
    return tuple(sorted(found, key=lambda work: -work.share))


def _stands_for(call: RepeatedCall, parts: dict[str, float], shares: dict[str, float]) -> float:
    """Share of the steady wall time that windows of the call's kind were taken from."""
    data, other = shares.get("Data", 0.0), shares.get("Other", 0.0)
    if call.where == "gap":
        return min(1.0, data + other)
    return data * parts[f"{call.role} {call.where}"]


def _parts_of_fetching(trace: Trace, rank: RankTrace, from_ns: int, to_ns: int) -> dict[str, float]:
    """For "main" and "worker": which part of making batches is the dataset's ("fetch") and which is joining samples ("collate").

    1 where nothing was timed: then a call is blamed for all that it could be.
    """
    fetches = {
        "main": [loader.fetches for loader in rank.loaders],
        "worker": [worker.fetches for worker in trace.workers if worker.parent == rank.pid],
    }
    parts = {}
    for role, timed in fetches.items():
        steady = [(each, (each.start_ns >= from_ns) & (each.start_ns < to_ns)) for each in timed]
        getitem = sum(int(each.getitem_ns[during].sum()) for each, during in steady)
        collate = sum(int(each.collate_ns[during].sum()) for each, during in steady)
        whole = getitem + collate
        parts[f"{role} fetch"] = getitem / whole if whole else 1.0
        parts[f"{role} collate"] = collate / whole if whole else 1.0
    return parts


def _merge(seen: list[RepeatedCall]) -> list[RepeatedCall]:
    """One entry for each function, role and kind of window: several workers trace the same functions."""
    groups: dict[tuple, list[RepeatedCall]] = {}
    for call in seen:
        groups.setdefault((call.location, call.role, call.where), []).append(call)
    return [_add_up(group) if len(group) > 1 else group[0] for group in groups.values()]


def _add_up(group: list[RepeatedCall]) -> RepeatedCall:
    sizes = [call.result_bytes for call in group if call.result_bytes is not None]
    sums = {name: sum(getattr(call, name) for call in group) for name in SUMMED}
    return replace(group[0], hashable=all(call.hashable for call in group), result_bytes=max(sizes, default=None), **sums)


def _inside_another(call: RepeatedCall, merged: list[RepeatedCall]) -> bool:
    """Whether a traced function around this one repeats itself, could be cached, and so removes this one's repeats too."""
    around = {other.qualname: other for other in merged if other.role == call.role and other.where == call.where}
    visited = {call.qualname}
    name = call.caller
    while name and name in around and name not in visited:
        visited.add(name)
        outer = around[name]
        if outer.hashable and outer.calls >= LEAST_CALLS and outer.repeats / max(1, outer.comparable) >= OFTEN:
            return True
        name = outer.caller
    return False
