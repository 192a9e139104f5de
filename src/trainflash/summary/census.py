"""What the censuses of operators say: figures of operators, the rows of updates, attention outside a fused kernel, predictions in vain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainflash.schema import Attention, IgnoredTargets, Location, Operators, PhaseStat, ThinProducts, Updates
from trainflash.summary.steady import NS_PER_MS
from trainflash.trace.computing import AttentionCall, AttentionLine, CensusTrace, ComputeTrace, TargetCall, TargetLine

BACKWARD_PER_FORWARD = 2.0  # each product of a forward pass needs two of its size in backward; used where backward was not matched
OF_MODULE = ("need_weights", "dropout on a CPU")  # why torch's own module of attention asks for a softmax
AFTER_UPDATES = ("Eval", "Ckpt", "Log")  # a census ends with the step's last update, before these usually run


def operators(seen: ComputeTrace) -> Operators | None:
    """Figures of the calmest census, and means over all."""
    censuses = seen.censuses
    if not censuses:
        return None

    calm = _calmest(censuses)
    setups = np.array(seen.convolution_setups or [(np.nan, np.nan)], dtype=float).mean(axis=0)

    def part_of(ns: int) -> float | None:
        return ns / calm.op_ns if calm.op_ns > 0 else None

    return Operators(
        steps=len(censuses),
        per_step=float(np.mean([census.ops for census in censuses])),
        op_ms=calm.op_ns / NS_PER_MS,
        step_ms=calm.ns / NS_PER_MS,
        small_share=part_of(calm.small_ns) or 0.0,
        optimizer_per_step=float(np.mean([census.optimizer_ops for census in censuses])),
        conv_share=part_of(calm.conv_ns),
        conv_per_step=float(np.mean([census.convs for census in censuses])),
        accumulated_share=part_of(calm.accumulated_ns),
        double_share=part_of(calm.double_ns),
        double_at=seen.double_at,
        set_up=None if np.isnan(setups[0]) else float(setups[0]),
        setup_ms=None if np.isnan(setups[1]) else float(setups[1]) / NS_PER_MS,
        thin=tuple(ThinProducts(rows, part_of(ns) or 0.0) for rows, ns in calm.thin),
        matmul_share=part_of(calm.matmul_ns),
        copy_share=part_of(calm.copy_ns),
        table_share=part_of(calm.table_ns),
        mode_share=calm.mode_ns / calm.ns if calm.ns > 0 else None,
        making_share=calm.data_ns / calm.ns if calm.ns > 0 else None,
        op_share=max((census.op_ns / census.ns for census in censuses if census.ns > 0), default=None),
    )


def updates(seen: ComputeTrace) -> Updates | None:
    """With the rows of a micro-batch as the products say that take most of the time of all, where no module's input says them: those of few
    rows, in a network of functions alone."""
    made, censuses = seen.updates, seen.censuses
    if made is None or made.micro_batch is not None or not censuses:
        return made
    calm = _calmest(censuses)
    rows, ns = max(calm.thin, key=lambda each: each[1], default=(0, 0))
    return replace(made, micro_batch=rows) if ns > 0.5 * calm.matmul_ns else made


def attention(seen: ComputeTrace, phases: dict[str, PhaseStat]) -> tuple[Attention, ...]:
    """By kind, shape and line. The share is the part of a census's time, of the steady time that such steps stand for."""
    if not seen.censuses:
        return ()
    stands_for = _stands_for(phases)
    parts: dict[tuple[str, tuple[int, ...]], list[float]] = {}
    calm = _calmest(seen.censuses)
    for call in calm.attention:
        entry = parts.setdefault((call.kind, call.shape), [0.0, 0.0])
        entry[0] += _ns(call) / max(1, calm.ns)
        entry[1] += call.calls
    found = []
    for (kind, shape), (share, calls) in parts.items():
        lines = [line for line in seen.attention_lines if line.shape == shape and (line.kind != "sdpa") == (kind == "hand_written")]
        for line, portion in _portions(lines):
            reason = line.reason if line is not None else ""
            found.append(
                Attention(
                    kind="math_fallback" if kind == "math_fallback" or reason in OF_MODULE else "hand_written",
                    location=line.location if line is not None else None,
                    share=min(1.0, share * stands_for) * portion,
                    per_step=calls * portion,
                    shape=shape,
                    reason="need_weights=True" if reason == "need_weights" else reason,
                )
            )
    return tuple(sorted(found, key=lambda each: -each.share))


def ignored_targets(seen: ComputeTrace, phases: dict[str, PhaseStat]) -> tuple[IgnoredTargets, ...]:
    """By line and number of classes, where some are ignored: rows may be more or fewer in each step.

    Lines whose predictions have as many classes share the time of these by the rows that they had.
    """
    if not seen.censuses:
        return ()
    calm, found = _calmest(seen.censuses), []
    grouped: dict[tuple[Location | None, int], list[TargetLine]] = {}
    for line in seen.target_lines:
        grouped.setdefault((line.location, line.shape[1]), []).append(line)
    for (place, classes), lines in grouped.items():
        beside = [line for line in seen.target_lines if line.shape[1] == classes]
        made = [call for call in calm.targets if call.shape[1] == classes]
        share = sum(map(_ns, made)) / max(1, calm.ns) * _stands_for(phases) * _targets(lines) / _targets(beside)
        calls = sum(call.calls for call in made) * sum(line.calls for line in lines) / sum(line.calls for line in beside)
        ignored = sum(line.ignored for line in lines) / _targets(lines)
        if ignored > 0 and share > 0:
            found.append(IgnoredTargets(place, min(1.0, share), ignored, calls, lines[-1].shape))
    return tuple(sorted(found, key=lambda each: -each.share * each.ignored))


def _targets(lines: list[TargetLine]) -> int:
    return sum(line.targets for line in lines)


def _portions(lines: list[AttentionLine]) -> list[tuple[AttentionLine | None, float]]:
    """Each distinct line with its part of the calls; one entry without a line where none was seen."""
    calls: dict[tuple, int] = {}
    first: dict[tuple, AttentionLine] = {}
    for line in lines:
        key = (line.location, line.reason)
        calls[key] = calls.get(key, 0) + line.calls
        first.setdefault(key, line)
    whole = sum(calls.values())
    return [(first[key], count / whole) for key, count in calls.items()] if whole else [(None, 1.0)]


def _calmest(censuses: tuple[CensusTrace, ...]) -> CensusTrace:
    """The fastest one: the first is cold, and a stall of the machine would be taken for an operator's time."""
    return min(censuses, key=lambda census: census.ns)


def _ns(call: AttentionCall | TargetCall) -> float:
    """Forward and backward."""
    return call.forward_ns + (BACKWARD_PER_FORWARD * call.forward_ns if call.backward_ns is None else call.backward_ns)


def _stands_for(phases: dict[str, PhaseStat]) -> float:
    """The part of the steady time that steps such as those of a census stand for."""
    return 1.0 - sum(phases[name].share for name in AFTER_UPDATES if name in phases)
