"""Rules about the formats of numbers and tensors: precision, memory_format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.claims import Claim, claim, count, percent, shown
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Location, Numerics, Operators, Site, UndoneLayout

BOTH = ("Fwd", "Bwd")
COPIES = "operator time in copies and layout changes"
HALF = ("bfloat16", "float16")
QUASI_NEWTON = frozenset({"LBFGS"})


def precision(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A number format costs time: float64, a 16-bit format that the CPU has to emulate, or float32 on a GPU with Tensor Cores (T9, T13).

    `share` is a low estimate: forward and backward, less tiny operators, times what the format costs at least. float32 on a GPU counts only
    from compute capability 8.0 on, without autocast, with matrix products or convolutions, and where the device is not waiting for the
    host (that part is not yet proved on a GPU). float64 under L-BFGS is no fault: its curvature comes from differences of nearly equal
    gradients, of which float32 keeps few digits (Nocedal and Wright, Numerical Optimization, chapters 6 and 7). Abstains where number
    formats or operators are unknown.
    """
    numerics, work = signals.summary.numerics, signals.fwd_bwd
    if numerics is None or work is None:
        return ()
    dtype = numerics.parameter_dtype.removeprefix("torch.")
    found = _slow_format(signals, numerics, dtype, limits)
    if found is None or work * found.part < limits.listed:
        return ()
    part = found.part
    rows = [
        Evidence("parameters", dtype),
        Evidence("autocast", numerics.autocast or "not used"),
        percent("forward and backward, share of wall time", work),
        Evidence("share is an estimate", f"{shown(part)} of forward and backward"),
    ]
    if signals.on_gpu and numerics.matmul_precision is not None:
        rows.append(Evidence("float32 matmul precision", numerics.matmul_precision))
    return (
        claim(
            "precision",
            "Fwd",
            signals.computed_on,
            work * part,
            limits,
            phases=BOTH,
            summary=f"{found.what}; about {shown(work * part)} of the time could be saved",
            evidence=rows,
            location=found.location or signals.hottest("Fwd"),
        ),
    )


@dataclass(frozen=True)
class _Format:
    """A number format that costs time: which part of forward and backward, what to say of it, and where it was chosen."""

    part: float
    what: str
    location: Location | None


def _slow_format(signals: Signals, numerics: Numerics, dtype: str, limits: Thresholds) -> _Format | None:
    operators, updates = signals.summary.operators, signals.summary.updates
    large = 1 - operators.small_share if operators is not None else 1.0
    if dtype == "float64":
        newton = updates is not None and updates.optimizer in QUASI_NEWTON
        return None if newton else _Format(limits.double_saving * large, "the network computes in float64", numerics.chosen_at)
    if not signals.on_gpu and (emulated := _emulated(numerics, dtype)) is not None:
        return _Format(limits.emulated_saving * large, f"the CPU has to emulate {emulated}", numerics.chosen_at)
    if operators is not None and operators.double_share is not None and operators.double_share - operators.small_share > limits.double_part:
        what = f"{shown(operators.double_share)} of the operator time computes in float64"
        return _Format(limits.double_saving * (operators.double_share - operators.small_share), what, operators.double_at)
    if signals.on_gpu and dtype == "float32" and _tensor_cores_idle(signals, numerics, limits):
        return _Format(limits.half_saving, "matrix products run in full float32 beside idle Tensor Cores", numerics.chosen_at)
    return None


def memory_format(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Convolutions run in a slow layout or by a slow algorithm (T10, T11), or tensors change layout again and again.

    On a GPU (not yet proved on one): 16-bit convolutions on NCHW inputs, or `cudnn.benchmark` off though all inputs have one shape; the
    set of kinds has no other for it. Anywhere: a large part of the operator time of a convolutional network in copies and layout changes,
    or a part of it in another network with a weight that lies turned round in memory, so that each of its gradients is turned, too.
    Off a GPU NCHW alone is no fault: which layout is faster depends on channels, kernels and the processor. It is tried (see
    `SiteOperator.channels_last_saves`), and what all tried calls save together counts. Abstains without the census of operators.
    """
    numerics, work, operators = signals.summary.numerics, signals.fwd_bwd, signals.summary.operators
    if numerics is None or work is None or operators is None:
        return ()
    tried = [] if signals.on_gpu else _tried(signals.summary.sites)
    if not numerics.convolutions and not tried:
        return _turned(signals, numerics, operators, limits)
    rows = [count("convolutions in the network", numerics.convolutions)]
    share, reasons = 0.0, []
    device_bound = signals.on_gpu and signals.host_bound is False
    if device_bound and numerics.channels_last is False and numerics.autocast in HALF:
        share += work * limits.layout_saving
        reasons.append("16-bit convolutions get inputs that are not channels_last")
    if device_bound and numerics.cudnn_benchmark is False and not numerics.deterministic and signals.summary.input_shapes == 1:
        share += work * limits.autotune_saving
        reasons.append("cudnn.benchmark is off though all inputs have one shape")
    copies, saved = operators.copy_share or 0.0, sum(each.saved for each in tried)
    undone = _undone(signals, limits) if saved > 0 else None
    many = copies >= limits.layout_copies and numerics.autocast is None and operators.step_ms > 0
    if many or undone is not None:
        share += _copying(signals, operators)
    if many:
        reasons.append(f"{shown(copies)} of the operator time are copies and changes of layout")
        rows.append(percent(COPIES, copies))
    if undone is not None:
        reasons.append(f"{undone.per_step:.0f} tensors a step are copied from channels_last to NCHW")
    if undone is not None or saved >= limits.dominant:
        share += saved
        takes = sum(each.share for each in tried)
        names = " and ".join(dict.fromkeys(each.name for each in tried[:2]))
        part = saved / takes
        reasons.append(f"{names} in NCHW: {shown(takes)} of the time, of which channels_last saves {shown(part)} on this machine")
        rows.append(percent("of their time that channels_last saved when both were tried, after the run", part))
    if share < limits.listed:
        return ()
    if numerics.channels_last is not None:
        rows.append(Evidence("inputs", "channels_last" if numerics.channels_last else "NCHW"))
    if signals.on_gpu and numerics.cudnn_benchmark is not None:
        rows.append(Evidence("cudnn.benchmark", "on" if numerics.cudnn_benchmark else "off"))
    if operators.conv_share is not None:
        rows.append(percent("operator time in convolutions", operators.conv_share))
    return (
        claim(
            "memory_format",
            "Fwd",
            signals.computed_on,
            share,
            limits,
            phases=COMPUTE,
            summary=f"{' and '.join(reasons)}; about {shown(share)} of the time",
            evidence=rows,
            location=undone.location
            if undone is not None
            else tried[0].location
            if saved >= limits.dominant
            else signals.hottest("Fwd")
            if copies >= limits.layout_copies
            else None,
        ),
    )


@dataclass(frozen=True)
class _Tried:
    """Calls that were run in both layouts; `saved`: share of the wall time that channels_last takes less, negative where it takes more."""

    name: str
    location: Location
    share: float
    saved: float


def _tried(sites: Sequence[Site]) -> list[_Tried]:
    """Those whose saving is largest first."""
    found = [
        _Tried(operator.name, site.location, operator.share, operator.share * operator.channels_last_saves)
        for site in sites
        for operator in (site.operators if site.role == "main" else ())
        if operator.channels_last_saves is not None
    ]
    return sorted(found, key=lambda each: -each.saved)


def _undone(signals: Signals, limits: Thresholds) -> UndoneLayout | None:
    """The layout that the forward pass undoes."""
    undone = signals.summary.undone_layout
    return None if undone is None or signals.on_gpu or undone.per_step < limits.layout_undone else undone


def _turned(signals: Signals, numerics: Numerics, operators: Operators, limits: Thresholds) -> tuple[Claim, ...]:
    share = _copying(signals, operators)
    if numerics.turned is None or share < limits.listed:
        return ()
    return (
        claim(
            "memory_format",
            "Bwd",
            signals.computed_on,
            share,
            limits,
            phases=COMPUTE,
            summary=f"the weight {numerics.turned} lies turned round in memory, and each of its gradients has to be turned as well: copies "
            f"and changes of layout take {shown(share)} of the time",
            evidence=(percent(COPIES, operators.copy_share or 0.0), Evidence("weight", numerics.turned)),
        ),
    )


def _copying(signals: Signals, operators: Operators) -> float:
    """Share of the wall time in copies and changes of layout, of which there is no more than computing."""
    if operators.step_ms <= 0:
        return 0.0
    return min((operators.copy_share or 0.0) * operators.op_ms / operators.step_ms, signals.compute or 0.0)


def _emulated(numerics: Numerics, dtype: str) -> str | None:
    """The 16-bit format of training that a CPU has no instructions for; None: none, or not known."""
    for used in (numerics.autocast, dtype):
        if used == "float16" or (used == "bfloat16" and numerics.bf16_supported is False):
            return used
    return None


def _tensor_cores_idle(signals: Signals, numerics: Numerics, limits: Thresholds) -> bool:
    if numerics.capability is None or tuple(numerics.capability) < (8, 0) or numerics.autocast in HALF or signals.host_bound is not False:
        return False
    if numerics.tf32_matmul or (numerics.matmul_precision or "highest") != "highest":
        return False
    operators = signals.summary.operators
    return operators is not None and operators.matmul_share is not None and operators.matmul_share >= limits.matmul_relevant
