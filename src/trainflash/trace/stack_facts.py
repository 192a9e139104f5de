"""Fact lines about call stacks → stacks, and calls of torch."""

from __future__ import annotations

from trainflash.schema.sites import Operand, Peaks
from trainflash.stacks import Stack, StackFrame, frame_at
from trainflash.trace.calls import CallRow, CallTrace
from trainflash.trace.facts import Facts


def stacks(facts: Facts) -> dict[int, Stack]:
    """The stacks of one process by their numbers."""
    frames = {int(fact["id"]): _frame(facts, fact) for fact in facts.all("frame")}
    return {
        int(fact["id"]): tuple(frame for each in fact.get("frames", ()) if (frame := frames.get(each)) is not None)
        for fact in facts.all("stack")
    }


def _frame(facts: Facts, fact: dict) -> StackFrame | None:
    location = facts.location(fact.get("at"))
    return None if location is None else frame_at(location, bool(fact.get("own")), str(fact.get("text", "")))


def bare_modules(facts: Facts) -> frozenset[tuple[str, str]]:
    """Forwards of called modules that have no parameters, torch's own left out: their calls are a network's as well."""
    told = [row for row in facts.newest("bare_modules").get("forwards", ()) if len(row) == 4]
    frames = [frame_at(location, bool(row[3]), "") for row in told if (location := facts.location(row[:3])) is not None]
    return frozenset((frame.location.file, frame.location.function) for frame in frames if frame.kind != "torch")


def calls(facts: Facts) -> tuple[CallTrace, ...]:
    """The steps whose calls were recorded."""
    known, tried = stacks(facts), _call_trials(facts)
    found = []
    for fact in facts.all("op_lines"):
        rows = [_row(known.get(row[0], ()), row, tried) for row in fact.get("rows", ()) if len(row) == 7]
        found.append(CallTrace(int(fact["step"]), int(fact["ns"]), tuple(rows), int(fact.get("nodes", 0)), int(fact.get("beside_ns", 0))))
    return tuple(found)


_Described = tuple[tuple[Operand, ...], tuple[Operand, ...], tuple[tuple[str, str], ...]]


def _call_trials(facts: Facts) -> dict[tuple[str, _Described], tuple[int, ...]]:
    """Nanoseconds of a call by itself, and where it was tried, in channels_last; by its name and tensors."""
    rows = [row for fact in facts.all("call_trials") for row in fact.get("rows", ()) if len(row) > 2]
    return {(str(name), _described(told)): tuple(int(ns) for ns in taken) for name, told, *taken in rows}


def _row(stack: Stack, row: list, tried: dict[tuple[str, _Described], tuple[int, ...]]) -> CallRow:
    _, phase, name, count, ns, backward_ns, told = row
    described = _described(told)
    alone = tried.get((str(name), described), ())
    return CallRow(stack, str(phase), str(name), int(count), int(ns), int(backward_ns), *described, alone_ns=alone)


def _described(told: list | None) -> _Described:
    given, made, plain = told or ((), (), ())
    return tuple(map(_operand, given)), tuple(map(_operand, made)), tuple((str(key), str(value)) for key, value in plain)


def _operand(told: list) -> Operand:
    shape, dtype, layout, requires_grad, device, *values = told
    return Operand(tuple(map(int, shape)), str(dtype), str(layout), bool(requires_grad), str(device), str(*values))


def peaks(facts: Facts) -> Peaks | None:
    """What the machine was measured to do at most; None where it was not measured in this run."""
    told = facts.newest("peaks")
    if not told:
        return None
    rates = [{str(name): float(rate) for name, rate in told.get(kind, {}).items()} for kind in ("bytes_per_s", "flops_per_s")]
    return Peaks(int(told.get("threads", 1)), *rates)
