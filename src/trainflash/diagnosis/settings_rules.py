"""Rules about how torch was set up: debug_api, precision, memory_format."""

from __future__ import annotations

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.claims import Claim, claim, count, percent, shown
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Location, Numerics, Operators, Setting

# Debugging aids as the probe names them, in three classes by what they cost. Anything else that it tells is no debugging aid.
HEAVY = {  # the work of each operation done again, or its stack kept, or its result looked at
    "anomaly_mode": "autograd's anomaly mode",
    "gradcheck": "gradcheck",
    "underflow_overflow": "a debugger that looks at every output",
}
RECORDING = {
    "profiler": "a profiler",
    "python_tracing": "a trace function",
    "python_profiler": "a Python profiler",
    "tracemalloc": "tracemalloc",
    "compile_debug": "debugging of the compiler",
    "distributed_debug": "debugging of communication",
    "blocking_launches": "CUDA_LAUNCH_BLOCKING",
    "debug_build": "a debug build of Python",
    "python_mode": "a mode that passes each call of torch through Python",
    "looking_mode": "a counter of torch's own that looks at each operator",
}
LIGHT = {
    "dev_mode": "Python's development mode",
    "malloc_debug": "a debugging allocator",
    "verbose_logs": "verbose logs of torch",
    "verbose_logging": "logging at DEBUG",
}
WORDS = HEAVY | RECORDING | LIGHT
ALL_PYTHON = ("python_tracing", "python_profiler", "tracemalloc", "debug_build")  # slow more than forward and backward
KNOBS = {
    "anomaly_mode": "anomaly_off", "profiler": "profiler_off", "python_profiler": "python_profiler_off", "tracemalloc": "tracemalloc_off",
    "gradcheck": "gradcheck_off",
}  # fmt: skip
MODES = ("python_mode", "looking_mode")
BOTH = ("Fwd", "Bwd")
COPIES = "operator time in copies and layout changes"
HALF = ("bfloat16", "float16")
QUASI_NEWTON = frozenset({"LBFGS"})


def debug_api(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A debugging aid is on while training (T12). Abstains without forward and backward.

    How much of them it costs cannot be read from one run, but for torch's dispatch modes, which are recorded: `share` is the part that a
    low factor would cost, or more where more was measured; the ceiling takes the documented one. It is ranked by all the time that it
    multiplies, so it comes first unless something else takes longer than that; light aids, such as verbose logs, by their share.
    """
    work = signals.fwd_bwd
    settings = [item for item in signals.summary.settings if item.name in WORDS and _costs(item, signals, limits)]
    if not settings or work is None:
        return ()
    factor, documented = limits.light_factor, limits.light_factor
    if any(item.name in RECORDING for item in settings):
        factor, documented = limits.debug_factor, limits.debug_factor_most
    if any(item.name in HEAVY for item in settings):
        factor, documented = limits.anomaly_factor, limits.anomaly_factor_most
    own = min(1.0 - work, sum(item.share or 0.0 for item in settings))
    measured = min(work, _in_modes(signals)) if any(item.name in MODES for item in settings) else 0.0
    share, most = (max(work * (1 - 1 / times), measured) + own for times in (factor, documented))
    if most < limits.listed:
        return ()
    light = all(item.name in LIGHT for item in settings)
    first = min(settings, key=lambda item: (item.location is None, list(WORDS).index(item.name)))
    names = " and ".join(dict.fromkeys(WORDS[item.name] for item in settings))
    where = f", switched on at {first.location}" if first.location is not None else ""
    return (
        claim(
            "debug_api",
            "Bwd" if signals.share("Bwd") else "Fwd",
            "host",
            share,
            limits,
            weight=share if light else min(1.0, _multiplied(signals, settings, work) + own),
            at_most=most,
            phases=(*BOTH, "Other") if own else BOTH,
            summary=f"{names} slows forward and backward, {shown(work)} of the time{where}",
            evidence=(
                *(Evidence(item.name, item.value) for item in settings),
                percent("forward and backward, share of wall time", work),
                *((percent("in its own calls, share of wall time", own),) if own else ()),
                *((percent("measured in its own code around operators, share of a step", measured),) if measured else ()),
                Evidence("share is an estimate", f"a factor of {factor:g}; documented is up to about {documented:g}"),
            ),
            location=first.location,
            knobs=tuple(dict.fromkeys(KNOBS[item.name] for item in settings if item.name in KNOBS)),
        ),
    )


def _costs(item: Setting, signals: Signals, limits: Thresholds) -> bool:
    """Whether it can cost anything: launches block on a GPU only, a mode by its own code, its calls, or as measured."""
    if item.name not in MODES:
        return item.name != "blocking_launches" or signals.on_gpu
    operators = signals.summary.operators
    call_us, own = (limits.looking_call_us, 0.0) if item.name == "looking_mode" else (limits.mode_call_us, _own_lines(item, signals))
    if operators is None or operators.step_ms <= 0:
        return own >= limits.listed
    calls = max(operators.per_step * call_us / 1000 / operators.step_ms, _in_modes(signals))
    return calls + own >= limits.listed


def _in_modes(signals: Signals) -> float:
    operators = signals.summary.operators
    return operators.mode_share or 0.0 if operators is not None else 0.0


def _own_lines(mode: Setting, signals: Signals) -> float:
    """Share of the mode's own lines but for the hottest, which may be the one that makes the call."""
    if mode.location is None:
        return 0.0
    by_line: dict[int, float] = {}
    for line in signals.summary.lines:
        if line.role == "main" and (line.location.file, line.location.function) == (mode.location.file, mode.location.function):
            by_line[line.location.line] = by_line.get(line.location.line, 0.0) + line.share
    return sum(sorted(by_line.values())[:-1])


def _multiplied(signals: Signals, settings: list[Setting], work: float) -> float:
    """Share of the wall time that the debugging aids slow down."""
    if not any(item.name in ALL_PYTHON for item in settings):
        return work
    workers = signals.loader is not None and signals.loader.num_workers > 0
    return min(1.0, work + sum(signals.share(name) or 0.0 for name in ("Opt", "Other", *(() if workers else ("Data",)))))


def precision(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A number format costs time: float64, a 16-bit format that the CPU has to emulate, or float32 on a GPU with Tensor Cores (T9, T13).

    `share` is a low estimate: forward and backward, less tiny operators, times what the format costs at least. float32 on a GPU counts only
    from compute capability 8.0 on, without autocast, with matrix products or convolutions, and where the device is not waiting for the
    host (that part is not yet proved on a GPU). float64 under L-BFGS is no fault: its curvature comes from differences of nearly equal
    gradients, of which float32 keeps few digits (Nocedal and Wright, Numerical Optimization, chapters 6 and 7). Abstains where number
    formats or operators are unknown.
    """
    numerics, work, operators = signals.summary.numerics, signals.fwd_bwd, signals.summary.operators
    if numerics is None or work is None:
        return ()
    dtype = numerics.parameter_dtype.removeprefix("torch.")
    large = 1 - operators.small_share if operators is not None else 1.0
    updates = signals.summary.updates
    if dtype == "float64" and updates is not None and updates.optimizer in QUASI_NEWTON:
        return ()
    if dtype == "float64":
        part, what = limits.double_saving * large, "the network computes in float64"
    elif not signals.on_gpu and (emulated := _emulated(numerics, dtype)) is not None:
        part, what = limits.emulated_saving * large, f"the CPU has to emulate {emulated}"
    elif signals.on_gpu and dtype == "float32" and _tensor_cores_idle(signals, numerics, limits):
        part, what = limits.half_saving, "matrix products run in full float32 beside idle Tensor Cores"
    else:
        return ()
    if work * part < limits.listed:
        return ()
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
            "device" if signals.on_gpu else "host",
            work * part,
            limits,
            phases=BOTH,
            summary=f"{what}; about {shown(work * part)} of the time could be saved",
            evidence=rows,
            location=numerics.chosen_at or _where(signals),
            knobs=("float32",) if dtype == "float64" else (),
        ),
    )


def memory_format(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Convolutions run in a slow layout or by a slow algorithm (T10, T11), or tensors change layout again and again.

    On a GPU (not yet proved on one): 16-bit convolutions on NCHW inputs, or `cudnn.benchmark` off though all inputs have one shape; the
    set of kinds has no other for it. Anywhere: a large part of the operator time of a convolutional network in copies and layout changes,
    or a part of it in another network with a weight that lies turned round in memory, so that each of its gradients is turned, too.
    Off a GPU NCHW alone is no fault: which layout is faster there has to be tried. Abstains without the census of operators.
    """
    numerics, work, operators = signals.summary.numerics, signals.fwd_bwd, signals.summary.operators
    if numerics is None or work is None or operators is None:
        return ()
    if not numerics.convolutions:
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
    copies = operators.copy_share or 0.0
    if copies >= limits.layout_copies and numerics.autocast is None and operators.step_ms > 0:
        share += _copying(signals, operators)
        reasons.append(f"{shown(copies)} of the operator time are copies and changes of layout")
        rows.append(percent(COPIES, copies))
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
            "device" if signals.on_gpu else "host",
            share,
            limits,
            phases=COMPUTE,
            summary=f"{' and '.join(reasons)}; about {shown(share)} of the time",
            evidence=rows,
            location=signals.hottest("Fwd") if copies >= limits.layout_copies else None,
        ),
    )


def _turned(signals: Signals, numerics: Numerics, operators: Operators, limits: Thresholds) -> tuple[Claim, ...]:
    share = _copying(signals, operators)
    if numerics.turned is None or share < limits.listed:
        return ()
    return (
        claim(
            "memory_format",
            "Bwd",
            "device" if signals.on_gpu else "host",
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


def _where(signals: Signals) -> Location | None:
    return signals.hottest("Fwd")
