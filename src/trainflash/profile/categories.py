"""What the category of an event in a JSON trace means, old and new style of Kineto, and of which categories an event without one is.

Sources: Kineto's `libkineto/include/ActivityType.h` and the categories of over 70 public traces, from PyTorch 1.8 to 2.9.
"""

from __future__ import annotations

import re

from trainflash.profile.events import Kind

KIND_OF_CATEGORY = {
    "cpu_op": Kind.HOST_OP,
    "operator": Kind.HOST_OP,
    "user_annotation": Kind.ANNOTATION,
    "nvtx": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "python function": Kind.PYTHON,
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_runtime": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.DRIVER,
    "xpu_driver": Kind.DRIVER,
    "privateuse1_driver": Kind.DRIVER,
    "overhead": Kind.OVERHEAD,
    "cuda_sync": Kind.SYNC,
    "xpu_sync": Kind.SYNC,
    "cuda_event": Kind.SYNC,
    "collective_comm": Kind.COLLECTIVE,
    "trace": Kind.SPAN,
    "cuda_profiler_range": Kind.OTHER,
}
LAUNCH_ARROWS = frozenset({"ac2g", "async", "async_cpu_to_gpu", "async_gpu"})  # say what `correlation` says
SPAN_PROCESSES = frozenset({"Spans", "Traces"})
MEMORY_MARK = "[memory]"

# Scopes of the profiler itself, which the old style calls operators like all others.
_SCOPE_NAMES = ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.step#", "Optimizer.zero_grad#")
_STEP = re.compile(r"ProfilerStep ?#(\d+)")
_COPY = re.compile(r"Mem(cpy|set)\b")


def kind_of(category: str, name: str) -> Kind:
    """The kind of an event of this category and name; `Kind.OTHER` for a category that is not known."""
    kind = KIND_OF_CATEGORY.get(category.lower(), Kind.OTHER)
    if kind is Kind.HOST_OP and name.startswith(_SCOPE_NAMES):
        return Kind.ANNOTATION
    if kind is Kind.KERNEL and (copy := _COPY.match(name)):
        return Kind.MEMCPY if copy[1] == "cpy" else Kind.MEMSET
    return kind


def step_number(name: str) -> int | None:
    """N of "ProfilerStep#N"; None if the name marks no step."""
    found = _STEP.match(name)
    return int(found[1]) if found and len(found[1]) < 18 else None
