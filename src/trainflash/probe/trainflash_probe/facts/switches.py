"""Debug switches outside torch's modes: of the interpreter, of logging, of compilers and of communication."""

from __future__ import annotations

import logging
import os
import sys

from ..phases import logs
from ..phases.loop import loop

# Artifacts of TORCH_LOGS that are written for a compilation or a warning only, so that they cost nothing while a program trains.
_FREE_LOGS = """
recompiles recompiles_verbose graph_breaks guards dynamo aot inductor dynamic perf_hints overlap fusion graph graph_sizes graph_code
aot_graphs aot_joint_graph output_code kernel_code schedule bytecode cudagraphs sym_node compiled_autograd trace_source not_implemented
onnx ddp_graphs post_grad_graphs inductor_metrics hierarchical_compile autotuning benchmarking cudagraph_static_inputs
"""
FREE_LOGS = frozenset(_FREE_LOGS.split())
RECORDS_PER_STEP = 1.0  # fewer log records than that a step are no cost


def interpreter() -> dict:
    """Switches of this Python that slow everything, name -> value."""
    found = {}
    if sys.flags.dev_mode:
        found["dev_mode"] = "python -X dev or PYTHONDEVMODE"
    allocator = "" if sys.flags.ignore_environment else os.environ.get("PYTHONMALLOC", "")
    if "debug" in allocator:
        found["malloc_debug"] = f"PYTHONMALLOC={allocator}"
    if hasattr(sys, "gettotalrefcount"):
        found["debug_build"] = "a debug build of Python"
    return found


def tracing() -> dict:
    """Tools that look at every line, call or allocation of the current thread; not our own windows."""
    found = {}
    tracer = sys.gettrace()
    if tracer is not None and _name(tracer).startswith("trainflash_probe."):
        tracer = None
    profiler = sys.getprofile()
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(number) for number in range(6)] if monitoring is not None else []
    if tracer is not None:
        found["python_tracing"] = _name(tracer)
    elif tools and (tools[0] or tools[1]) and _has_events(monitoring, (0, 1)):
        found["python_tracing"] = str(tools[0] or tools[1])
    if profiler is not None:
        found["python_profiler"] = _name(profiler)
    elif tools and tools[2] and _has_events(monitoring, (2,)):
        found["python_profiler"] = str(tools[2])
    memory = sys.modules.get("tracemalloc")
    if memory is not None and memory.is_tracing():
        found["tracemalloc"] = f"{memory.get_traceback_limit()} frames"
    return found


def _has_events(monitoring, numbers: tuple) -> bool:
    return any(monitoring.get_tool(number) and monitoring.get_events(number) for number in numbers)


def _name(tool: object) -> str:
    owner = getattr(tool, "__self__", None)
    if owner is not None and not isinstance(owner, type(sys)):
        tool = type(owner)
    elif not hasattr(tool, "__qualname__"):
        tool = type(tool)
    return f"{tool.__module__}.{tool.__qualname__}"


def verbose(torch, compiles: bool) -> dict:
    """What writes or checks more than training needs."""
    found = {}
    chatty = [word for word in os.environ.get("TORCH_LOGS", "").split(",") if word and word.strip("+-").strip() not in FREE_LOGS]
    if chatty:
        found["verbose_logs"] = f"TORCH_LOGS={','.join(chatty)}"
    if compiles:
        found.update(_compilers())
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        found.update(_communication(torch))
    records = sum(count for (_, source), (count, _) in logs.tally.sums.items() if source == "logging")
    if logging.getLogger().getEffectiveLevel() <= logging.DEBUG and loop.steps and records > RECORDS_PER_STEP * loop.steps:
        found["verbose_logging"] = f"root logger at DEBUG: {records / loop.steps:.1f} records a step"
    return found


def _compilers() -> dict:
    found = {}
    inductor, dynamo = sys.modules.get("torch._inductor.config"), sys.modules.get("torch._dynamo.config")
    if inductor is not None and (getattr(inductor, "nan_asserts", False) or getattr(inductor, "debug_check_inf_and_nan", False)):
        found["compile_debug"] = "torch._inductor.config.nan_asserts: every kernel's result is looked at"
    elif dynamo is not None and getattr(dynamo, "repro_after", None):
        found["compile_debug"] = f"torch._dynamo.config.repro_after={dynamo.repro_after}"
    elif os.environ.get("TORCH_COMPILE_DEBUG", "0") not in ("", "0"):
        found["compile_debug"] = "TORCH_COMPILE_DEBUG"
    return found


def _communication(torch) -> dict:
    level = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper()
    if level in ("DETAIL", "INFO"):
        return {"distributed_debug": f"TORCH_DISTRIBUTED_DEBUG={level}"}
    level = os.environ.get("NCCL_DEBUG", "").upper()
    if level in ("INFO", "TRACE") and torch.distributed.get_backend() == "nccl":
        return {"distributed_debug": f"NCCL_DEBUG={level}"}
    return {}
