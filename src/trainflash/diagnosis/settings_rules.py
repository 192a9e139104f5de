"""The rule about debugging aids that were left on: debug_api."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, claim, percent, shown
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Setting

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
    "anomaly_mode": "anomaly_off", "tracemalloc": "tracemalloc_off", "gradcheck": "gradcheck_off",
}  # fmt: skip
MODES = ("python_mode", "looking_mode")
BOTH = ("Fwd", "Bwd")


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
