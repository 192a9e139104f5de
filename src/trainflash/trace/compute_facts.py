"""Fact lines about computing → `ComputeTrace`."""

from __future__ import annotations

import numpy as np

from trainflash.schema.computing import Numerics, Parts, UndoneLayout, Updates
from trainflash.schema.runs import Location
from trainflash.trace.computing import (
    AttentionCall,
    AttentionLine,
    CensusTrace,
    CompileTrace,
    ComputeTrace,
    Counter,
    ForwardRepeatTrace,
    FrozenTrace,
    GcTrace,
    InVainTrace,
    MemoryTrace,
    RecomputeTrace,
    SizeTrace,
    StartTrace,
    SyncTrace,
    TargetCall,
    TargetLine,
)
from trainflash.trace.facts import Facts

CENSUS_FIGURES = ("ns", "ops", "op_ns", "small_ns", "optimizer_ops", "matmul_ns", "conv_ns", "copy_ns")
LATER_FIGURES = ("mode_ns", "data_ns", "convs", "accumulated_ns", "double_ns", "table_ns")  # that older records lack


def read_computing(facts: Facts) -> ComputeTrace:
    """Everything about computing that one process wrote."""
    return ComputeTrace(
        syncs=_syncs(facts),
        compilation=_compilation(facts),
        collections=_collections(facts),
        recompute=_recompute(facts),
        forward_repeats=_forward_repeats(facts),
        frozen=_frozen(facts),
        in_vain=_in_vain(facts),
        starts=_starts(facts),
        memory=_memory(facts),
        censuses=_censuses(facts),
        attention_lines=_attention_lines(facts),
        target_lines=_target_lines(facts),
        double_at=_double_at(facts),
        undone_layout=_undone_layout(facts),
        convolution_setups=tuple((int(each["set_up"]), int(each["ns"])) for each in facts.all("convolution_setup")),
        updates=_updates(facts),
        parts=_parts(facts),
        numerics=_numerics(facts),
        sizes=_sizes(facts),
    )


def left_out(facts: Facts) -> tuple[int, ...]:
    """Steps that a census slowed, void ones too."""
    return tuple(sorted({int(fact["step"]) for fact in facts.all("census") if "step" in fact}))


def steps_from(facts: Facts) -> int:
    """The first step of which it is known what ends it: gradients count as steps until something is seen to update."""
    found = [*facts.all("update_function"), *facts.all("first_update")]
    return max((int(fact.get("step", 0)) for fact in found), default=0)


def _counter(points: list[dict], value) -> Counter:
    """`value(point)` over the points that have it."""
    read = [(int(point["t"]), value(point)) for point in points]
    known = [(t, number) for t, number in read if number is not None]
    return Counter(np.array([t for t, _ in known], dtype=np.int64), np.array([float(number) for _, number in known]))


def _rows(points: list[dict], width: int) -> dict[tuple, list[list[int]]]:
    """For each key (the first `width` items of a row) its other items at each point; zeros before it was seen."""
    found: dict[tuple, list[list[int]]] = {}
    for number, point in enumerate(points):
        for row in point.get("rows", []):
            key = tuple(tuple(item) if isinstance(item, list) else item for item in row[:width])
            at = found.setdefault(key, [[0] * (len(row) - width) for _ in points])[number]
            at[:] = [old + new for old, new in zip(at, row[width:], strict=True)]  # two library lines may have one place: None
    return found


def _sums(points: list[dict], width: int) -> list[tuple[tuple, list[int]]]:
    """For each key its other items added up over all points, in the order of the second, largest first."""
    found = [(key, [sum(column) for column in zip(*values, strict=True)]) for key, values in _rows(points, width).items()]
    return sorted(found, key=lambda item: -item[1][1])


def _series(points: list[dict], values: list[list[int]], column: int) -> Counter:
    return Counter(np.array([int(point["t"]) for point in points], dtype=np.int64), np.array([float(row[column]) for row in values]))


def _syncs(facts: Facts) -> tuple[SyncTrace, ...]:
    points = facts.all("syncs")
    return tuple(
        SyncTrace(facts.location(place), str(call), str(phase), bool(on_device), _series(points, values, 0), _series(points, values, 1))
        for (place, call, phase, on_device), values in _rows(points, 4).items()
    )


def _recompute(facts: Facts) -> tuple[RecomputeTrace, ...]:
    points = facts.all("recompute")
    steps = _counter(points, lambda point: point.get("steps"))
    return tuple(
        RecomputeTrace(facts.location(place), _series(points, values, 0), _series(points, values, 1), steps)
        for (place,), values in _rows(points, 1).items()
    )


def _in_vain(facts: Facts) -> tuple[InVainTrace, ...]:
    """Sums over the steps in which it was known which parameters no optimizer holds."""
    windows = [window for window in facts.all("again") if window.get("in_vain") is not None]
    recorded = sum(int(window.get("recorded_ns", 0)) for window in windows)
    return tuple(
        InVainTrace(facts.location(place), direct, held, calls / len(windows), ns / recorded, recorded / len(windows))
        for (place, direct, held), (calls, ns) in _sums([{"rows": window["in_vain"]} for window in windows], 3)
        if recorded
    )


def _forward_repeats(facts: Facts) -> tuple[ForwardRepeatTrace, ...]:
    """Sums over all steps looked at."""
    windows = facts.all("again")
    total, recorded = (sum(int(window.get(name, 0)) for window in windows) for name in ("total_ns", "recorded_ns"))
    return tuple(
        ForwardRepeatTrace(
            facts.location(place), calls / len(windows), ns / total, of_recorded / recorded if recorded else 0.0, total / len(windows)
        )
        for (place,), (calls, ns, of_recorded) in _sums(windows, 1)
        if total
    )


def _frozen(facts: Facts) -> tuple[FrozenTrace, ...]:
    """As the newest fact says."""
    seen = facts.all("frozen")[-1:]
    return tuple(
        FrozenTrace(facts.location(place), calls / of_any, rows, again)
        for each in seen
        for place, calls, of_any, rows, again in each.get("rows", [])
    )


def _undone_layout(facts: Facts) -> UndoneLayout | None:
    """The mean of the steps looked at."""
    seen = facts.all("undone_layouts")
    if not seen:
        return None
    return UndoneLayout(facts.location(seen[-1]["at"]), sum(int(each["calls"]) for each in seen) / len(seen))


def _starts(facts: Facts) -> tuple[StartTrace, ...]:
    points = facts.all("starts")
    return tuple(
        StartTrace(facts.location(place), str(what), facts.location(made), _series(points, values, 0), _series(points, values, 1))
        for (place, what, made), values in _rows(points, 3).items()
    )


def _compilation(facts: Facts) -> CompileTrace | None:
    newest = facts.newest("compile")
    if not newest:
        return None
    spans = np.array(newest.get("spans") or np.zeros((0, 2)), dtype=np.int64).reshape(-1, 2)
    return CompileTrace(
        start_ns=spans[:, 0],
        ns=spans[:, 1],
        frames=int(newest.get("frames", 0)),
        graph_breaks=int(newest.get("graph_breaks", 0)),
        reasons=tuple(str(reason) for reason, _ in newest.get("reasons", [])),
        limit_hit=bool(newest.get("limit_hit")),
        location=facts.location(newest.get("at")),
    )


def _collections(facts: Facts) -> GcTrace | None:
    points = facts.all("gc")
    if len(points) < 2:
        return None
    young, middle, full = (_counter(points, lambda point, generation=generation: point["counts"][generation]) for generation in range(3))
    return GcTrace(
        counts=(young, middle, full),
        ns=_counter(points, lambda point: point["ns"]),
        called=_counter(points, lambda point: point["called"]),
        location=facts.location(points[-1].get("at")),
        struck=tuple((str(phase), facts.location(at), int(times), int(ns)) for phase, at, times, ns in points[-1].get("struck", ())),
    )


def _memory(facts: Facts) -> MemoryTrace | None:
    points = facts.all("memory")
    if not points:
        return None
    newest = points[-1]
    events, stalled = (_counter(points, lambda point, name=name: point.get(name)) for name in ("events", "stalled_us"))
    swapped = [point["swapped"] for point in points if point.get("swapped") is not None]
    devices = [point["device"] for point in points if point.get("device")]
    return MemoryTrace(
        peak_bytes=newest.get("peak"),
        limit_bytes=newest.get("limit"),
        swapped_bytes=max(swapped, default=None),
        faults=_counter(points, lambda point: point.get("faults")),
        events=events if len(events.t_ns) else None,
        stalled_us=stalled if len(stalled.t_ns) else None,
        device=devices[-1] if devices else None,
    )


def _censuses(facts: Facts) -> tuple[CensusTrace, ...]:
    """Void ones are left out, and those of what only seemed to be steps."""
    found, since = [], steps_from(facts)
    for fact in facts.all("census"):
        if all(name in fact for name in CENSUS_FIGURES) and int(fact["step"]) >= since:
            attention = tuple(AttentionCall(str(kind), *_regions(row)) for kind, *row in fact.get("attention", []))
            targets = tuple(TargetCall(*_regions(row)) for row in fact.get("targets", []))
            figures = {name: int(fact[name]) for name in CENSUS_FIGURES} | {name: int(fact.get(name, 0)) for name in LATER_FIGURES}
            thin = tuple((int(rows), int(ns)) for rows, ns in fact.get("thin", []))
            found.append(CensusTrace(step=int(fact["step"]), attention=attention, targets=targets, thin=thin, **figures))
    return tuple(found)


def _regions(row: list) -> tuple[tuple[int, ...], int, int, int | None]:
    """Shape, calls, nanoseconds forward and backward of what several operators make together."""
    shape, calls, forward, back = row
    return _shape(shape), int(calls), int(forward), None if back is None else int(back)


def _shape(sizes: list) -> tuple[int, ...]:
    return tuple(int(size) for size in sizes)


def _target_lines(facts: Facts) -> tuple[TargetLine, ...]:
    return tuple(
        TargetLine(facts.location(place), _shape(shape), int(calls), int(targets), int(ignored))
        for fact in facts.all("target_lines")
        for place, shape, calls, targets, ignored in fact.get("rows", [])
    )


def _attention_lines(facts: Facts) -> tuple[AttentionLine, ...]:
    return tuple(
        AttentionLine(str(kind), facts.location(place), _shape(shape), str(reason), int(calls))
        for fact in facts.all("attention_lines")
        for kind, place, shape, reason, calls in fact.get("rows", [])
    )


def _double_at(facts: Facts) -> Location | None:
    """The line whose float64 gets gradients, or else that makes most elements of it."""
    return next((facts.location(place) for fact in facts.all("double_lines") for place, _, _ in fact.get("rows", [])), None)


def _updates(facts: Facts) -> Updates | None:
    fact = facts.newest("updates")
    if not fact:
        return None
    graded, unheld, first_unheld = fact.get("unheld") or (None, None, None)
    return Updates(
        optimizer=str(fact["optimizer"]),
        location=facts.location(fact.get("at")),
        fused=fact.get("fused"),
        foreach=fact.get("foreach"),
        tensors=int(fact["tensors"]),
        elements=int(fact["elements"]),
        optimizers=int(fact["optimizers"]),
        backwards_per_step=float(fact["backwards"]),
        micro_batch=fact.get("micro_batch"),
        zero_to_none=fact.get("zero_to_none"),
        grad_scaler=bool(fact.get("grad_scaler")),
        package=fact.get("package"),
        graded=graded,
        unheld=unheld,
        first_unheld=first_unheld,
    )


def _parts(facts: Facts) -> Parts | None:
    """What most of the steps looked at have in common."""
    seen = [tuple(map(tuple, fact["part"][:1])) + tuple(fact["part"][1:]) if fact.get("part") else None for fact in facts.all("parts")]
    usual = max(set(seen), key=seen.count, default=None)
    location = None if usual is None else facts.location(usual[0])
    return None if location is None else Parts(location, int(usual[1]), int(usual[2]))


def _numerics(facts: Facts) -> Numerics | None:
    fact = facts.newest("numerics")
    if not fact:
        return None
    capability = fact.get("capability")
    return Numerics(
        parameter_dtype=str(fact["parameter_dtype"]),
        autocast=fact.get("autocast"),
        matmul_precision=fact.get("matmul_precision"),
        tf32_matmul=fact.get("tf32_matmul"),
        tf32_cudnn=fact.get("tf32_cudnn"),
        capability=(int(capability[0]), int(capability[1])) if capability else None,
        bf16_supported=fact.get("bf16"),
        cudnn_benchmark=fact.get("cudnn_benchmark"),
        deterministic=bool(fact.get("deterministic")),
        convolutions=int(fact.get("convolutions", 0)),
        channels_last=fact.get("channels_last"),
        compiled=bool(fact.get("compiled")),
        turned=fact.get("turned"),
        chosen_at=facts.location(fact.get("chosen_at")),
    )


def _sizes(facts: Facts) -> SizeTrace | None:
    fact = facts.newest("sizes")
    if not fact:
        return None
    steps, tokens = int(fact.get("steps", 0)), fact.get("tokens")
    return SizeTrace(
        parameters=int(fact["parameters"]),
        embedding=int(fact["embedding"]),
        multiplying=int(fact["multiplying"]),
        samples=int(fact["samples"]) / steps if steps and fact.get("samples") else None,
        tokens=int(tokens) / steps if steps and tokens else None,
    )
