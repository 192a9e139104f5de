"""How much of the computing lies inside operators, by the census of a few early steps."""

from __future__ import annotations

from trainflash.diagnosis.calm import COMPUTE, busy_machine
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds

LEAST_MS = 1e-6  # the clock counts nanoseconds: less is no measurement


def covered(signals: Signals, op_ms: float) -> float | None:
    """`op_ms` of a census ÷ the computing of a step, at least. None without a census."""
    computing = _computing_ms(signals)
    return None if computing is None else min(1.0, op_ms / computing)


def explained(signals: Signals, python_each_us: float) -> float | None:
    """Part of the computing that operators take, with `python_each_us` of Python for each of them. None without a census.

    The largest of the censuses says it: a step that lost its core between two operators looks like one full of Python, but Python that
    the program runs is there in every step.
    """
    operators, compute = signals.summary.operators, signals.compute
    if operators is None or not compute:
        return None
    calling_ms = operators.per_step * python_each_us / 1000
    known = covered(signals, operators.op_ms + calling_ms)
    if known is None or operators.op_share is None or operators.step_ms <= 0:
        return known
    return max(known, min(1.0, (operators.op_share + calling_ms / operators.step_ms) / compute))


def mean_operator_us(signals: Signals) -> float | None:
    """Mean time of an operator in µs, without what it waited for a core. None without a census."""
    operators = signals.summary.operators
    if operators is None or operators.per_step <= 0:
        return None
    return 1000 * operators.op_ms / operators.per_step * _with_a_core(signals)


def usual_each_us(signals: Signals) -> float | None:
    """What the computing of a usual step leaves for each operator and its Python, as above. Being recorded makes operators look longer."""
    operators, computing = signals.summary.operators, _computing_ms(signals)
    if operators is None or computing is None or operators.per_step <= 0:
        return None
    return 1000 * computing * _with_a_core(signals) / operators.per_step


def fixed_costs(signals: Signals, limits: Thresholds) -> float | None:
    """Part of the computing that is Python, launching and tiny operators, at least. None without a census.

    Three low estimates, the largest one of them: what lies outside operators of 20 µs and more, what calling so many operators takes at
    least, and half of it where so little time is there for each operator, with its Python, that calling it takes half, and the record
    shows many tiny ones.
    Being recorded makes operators look longer; the others do not ask how long they were.
    """
    operators, mean_us, computing = signals.summary.operators, mean_operator_us(signals), _computing_ms(signals)
    each_us = usual_each_us(signals)
    if operators is None or mean_us is None or computing is None or each_us is None:
        return None
    small = operators.small_share
    if busy_machine(signals.summary, limits) and mean_us <= limits.launch_mean_us:
        small = max(small, 0.5)  # a tiny operator that loses its core looks large
    outside = 1 - min(1.0, operators.op_ms * (1 - small) / computing)
    calling = operators.per_step * limits.launch_call_us / 1000 / (computing * _with_a_core(signals))
    tiny = each_us <= limits.launch_each_us and operators.small_share >= limits.launch_small
    return max(outside, min(1.0, calling), 0.5 if tiny else 0.0)


def thin_costs(signals: Signals, rows: int, limits: Thresholds) -> float:
    """Part of the computing that products of so few rows take for their matrices, and adding gradients up; 0 where not known."""
    operators, computing = signals.summary.operators, _computing_ms(signals)
    if operators is None or computing is None:
        return 0.0
    products = sum(each.share for each in operators.thin if each.rows == rows) * limits.micro_thin_rows / (limits.micro_thin_rows + rows)
    return min(1.0, operators.op_ms * (products + (operators.accumulated_share or 0.0)) / computing)


def _computing_ms(signals: Signals) -> float | None:
    """Computing of a step: of the census' own, or of a usual one where that is shorter.

    Both are asked because a busy machine stretches either of them, and stretched steps look empty.
    """
    operators, compute, phases = signals.summary.operators, signals.compute, signals.summary.phases
    if operators is None or not compute:
        return None
    usual = sum(phases[name].p50_ms or phases[name].mean_ms for name in COMPUTE if name in phases)
    shorter = min(operators.step_ms * compute, usual) if usual > 0 else operators.step_ms * compute
    return shorter if shorter > LEAST_MS else None


def _with_a_core(signals: Signals) -> float:
    """Part of the time in which the training process had a core; 1 where that is not known."""
    threads = signals.threads
    return 1 - min(0.9, threads.runqueue_share or 0.0) if threads is not None else 1.0
