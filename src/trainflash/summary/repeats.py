"""Which of the owner's functions do the same work again, and what share of the wall time that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainflash.schema import RepeatedWork
from trainflash.summary.steady import NS_PER_MS, Steady
from trainflash.trace import RankTrace, RepeatedCall, Trace

LEAST_CALLS = 2
SUMMED = ("calls", "comparable", "repeats", "distinct", "sampled", "inclusive_ns", "repeat_ns", "window_ns")
OPERATORS = "operators"  # calls of torch by the owner's lines, from a step's begin to its backward
FUNCTIONS = ("forward", "gap")  # calls of the owner's functions, where those lines are
AFTER_FORWARD = ("Bwd", "Opt", "Eval", "Ckpt", "Log")
CHEAPER = 0.5  # own: repeats that cost less than this part of first calls tell the price from then on: something is kept already
TRACED_NS = 2_500  # measured: what tracing adds to a call, which a look-up in a cache hardly exceeds
OFTEN = 0.2  # a function that repeats itself in fewer calls is no cause to drop the functions that it calls


def repeated_work(trace: Trace, rank: RankTrace, part: Steady, shares: dict[str, float]) -> tuple[RepeatedWork, ...]:
    """Functions seen to repeat work, costliest first; of nested ones the outermost that repeats itself and could be cached.

    The share is estimated: the part of the traced windows that calls of the function took, times the share of the steady wall time
    that those windows stand for. Windows in worker processes stand for the training process's waiting for them.
    """
    seen = list(rank.repeated)
    for worker in trace.workers:
        if worker.parent == rank.pid:
            seen += worker.repeated
    evaluating = {loader.id for loader in rank.loaders if loader.role == "eval"}
    merged = _merge(seen, evaluating)
    parts = _Parts(trace, rank, part, shares, evaluating)
    samples = sum(loader.dataset_len or 0 for loader in rank.loaders)
    found = []
    for call in merged:
        if call.calls < LEAST_CALLS or call.repeats == 0 or call.window_ns <= 0 or _inside_another(call, merged):
            continue
        counted = _counted_oftener(call, seen)
        found.append(
            RepeatedWork(
                location=call.location,
                qualname=call.qualname,
                role="worker" if call.role == "worker" else "main",
                calls=counted.comparable,
                repeats=counted.repeats,
                mean_ms=_price_ns(call) / NS_PER_MS,
                share=_part_of_windows(call) * parts.stands_for(call),
                hashable=call.hashable,
                is_method=call.is_method,
                result_bytes=call.result_bytes,
                distinct=_distinct(call, samples),
                during=call.where,
                containers=call.containers,
            )
        )
    return tuple(sorted(found, key=lambda work: -work.share))


def _price_ns(call: RepeatedCall) -> float:
    """What a call costs from now on: the mean of all, or of the repeats where these are far cheaper than the first calls."""
    every, again = call.inclusive_ns / call.calls, call.repeat_ns / call.repeats
    first = (call.inclusive_ns - call.repeat_ns) / max(1, call.calls - call.repeats)
    return max(0.0, again - TRACED_NS) if again < CHEAPER * first else every


def _part_of_windows(call: RepeatedCall) -> float:
    """Part of the traced windows that calls at this price take."""
    spent = call.calls * _price_ns(call)
    return min(1.0, spent / max(1.0, call.window_ns - call.inclusive_ns + spent))


def _distinct(call: RepeatedCall, samples: int) -> int:
    """Different arguments in the whole run: where each sample brings its own, as many as there are samples."""
    own = call.where == "collate" and call.comparable < call.calls
    own = own or (call.where == "fetch" and 0 < call.sampled <= 2 * call.distinct)
    return max(call.distinct, samples) if own else call.distinct


class _Parts:
    """Which share of the steady wall time each kind of window was taken from."""

    def __init__(self, trace: Trace, rank: RankTrace, part: Steady, shares: dict[str, float], evaluating: set[int]) -> None:
        self._rank, self._steady, self._shares, self._evaluating = rank, part, shares, evaluating
        workers = [worker for worker in trace.workers if worker.parent == rank.pid]
        self._made = {
            ("main", False): [loader.fetches for loader in rank.loaders if loader.id not in evaluating],
            ("main", True): [loader.fetches for loader in rank.loaders if loader.id in evaluating],
            ("worker", False): [worker.fetches for worker in workers if worker.loader not in evaluating],
            ("worker", True): [worker.fetches for worker in workers if worker.loader in evaluating],
        }

    def stands_for(self, call: RepeatedCall) -> float:
        """Share of the steady wall time that windows of the call's kind were taken from."""
        data, other = self._shares.get("Data", 0.0), self._shares.get("Other", 0.0)
        if call.where == "gap":
            return min(1.0, data + other)
        if call.where == "forward":
            return min(self._until_backward(), self._shares.get("Fwd", 0.0) + other)
        if call.where == OPERATORS:
            return max(0.0, 1.0 - sum(self._shares.get(name, 0.0) for name in AFTER_FORWARD))
        evaluates = call.loader in self._evaluating
        whole = min(self._shares.get("Eval", 0.0), self._waits_of_evaluation()) if evaluates else data
        return whole * self._part(call.role, evaluates, call.where)

    def _until_backward(self) -> float:
        """From the first forward of each backward to that backward."""
        if not all(name in self._rank.occurrences for name in ("Fwd", "Bwd")):
            return 0.0
        forward, backward = self._rank.occurrences["Fwd"], self._rank.occurrences["Bwd"]
        if not len(forward.start_ns):
            return 0.0
        before = np.concatenate(([0], backward.end_ns[:-1])) if len(backward.end_ns) else backward.end_ns
        first = np.minimum(np.searchsorted(forward.start_ns, before), len(forward.start_ns) - 1)
        length = np.maximum(0, backward.start_ns - forward.start_ns[first])
        return float(length[self._steady.keeps(backward.step)].sum()) / self._steady.wall_ns

    def _waits_of_evaluation(self) -> float:
        """Waiting for batches of evaluations, over the whole run: few of them may lie in the steady part."""
        waits = sum(float(loader.wait_ns.sum()) for loader in self._rank.loaders if loader.id in self._evaluating)
        return waits / max(1, self._rank.end_ns - int(self._rank.step_start_ns[0]))

    def _part(self, role: str, evaluates: bool, where: str) -> float:
        """Which part of making batches is the dataset's ("fetch") and which is joining samples ("collate").

        1 where nothing was timed: then a call is blamed for all that it could be.
        """
        steady = [(each, self._steady.holds(each.start_ns)) for each in self._made[(role, evaluates)]]
        if not any(during.any() for _, during in steady):
            steady = [(each, np.ones_like(during)) for each, during in steady]
        getitem = sum(int(each.getitem_ns[during].sum()) for each, during in steady)
        collate = sum(int(each.collate_ns[during].sum()) for each, during in steady)
        if not getitem + collate:
            return 1.0
        return (collate if where == "collate" else getitem) / (getitem + collate)


def _merge(seen: list[RepeatedCall], evaluating: set[int]) -> list[RepeatedCall]:
    """One entry for each function, role, kind of window, training or evaluation: several workers trace the same functions."""
    groups: dict[tuple, list[RepeatedCall]] = {}
    for call in seen:
        if call.where != OPERATORS:
            groups.setdefault((call.location, call.role, call.where, call.loader in evaluating), []).append(call)
        elif call.repeats >= OFTEN * max(1, call.comparable):
            groups.setdefault((call.location.file, call.qualname, call.role), []).append(call)
    merged = [_add_up(group) if len(group) > 1 else group[0] for group in groups.values()]
    return [call for call in merged if call.where != OPERATORS or not _told_as_function(call, merged)]


def _told_as_function(call: RepeatedCall, merged: list[RepeatedCall]) -> bool:
    """Whether the function that makes these calls of torch repeats itself as a whole."""
    return any(other.where in FUNCTIONS and other.repeats and other.qualname == call.qualname for other in merged)


def _counted_oftener(call: RepeatedCall, seen: list[RepeatedCall]) -> RepeatedCall:
    """What tells how often `call` repeats itself: itself, or the costliest line of torch inside of it where more windows looked at that.

    A function that is called once a step is traced in a few forwards only; its calls of torch are compared in windows of their own.
    """
    inside = [
        other for other in seen
        if other.where == OPERATORS and (other.location.file, other.qualname, other.role) == (call.location.file, call.qualname, call.role)
    ]  # fmt: skip
    costliest = max(inside, key=lambda other: other.inclusive_ns, default=call)
    return costliest if call.where in FUNCTIONS and costliest.repeats > call.repeats else call


def _add_up(group: list[RepeatedCall]) -> RepeatedCall:
    if group[0].where == OPERATORS:  # different work of one function in the same windows: its costliest line stands for it
        group = sorted(group, key=lambda call: -call.inclusive_ns)
        sums = {name: sum(getattr(call, name) for call in group) for name in SUMMED if name != "window_ns"}
        return replace(group[0], **sums)
    sizes = [call.result_bytes for call in group if call.result_bytes is not None]
    sums = {name: sum(getattr(call, name) for call in group) for name in SUMMED}
    return replace(
        group[0],
        hashable=all(call.hashable for call in group),
        containers=all(call.containers for call in group),
        result_bytes=max(sizes, default=None),
        **sums,
    )


def _inside_another(call: RepeatedCall, merged: list[RepeatedCall]) -> bool:
    """Whether a traced function around this one repeats itself, could be cached, and so removes this one's repeats too."""
    near = [other for other in merged if (other.role, other.where, other.loader) == (call.role, call.where, call.loader)]
    around = {other.qualname: other for other in near}
    visited = {call.qualname}
    name = call.caller
    while name and name in around and name not in visited:
        visited.add(name)
        outer = around[name]
        if outer.hashable and outer.calls >= LEAST_CALLS and outer.repeats / max(1, outer.comparable) >= OFTEN:
            return True
        name = outer.caller
    return False
