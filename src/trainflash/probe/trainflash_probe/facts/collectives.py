"""Hooks on torch.distributed: how long calls that talk to other ranks hold the training thread, how much they carry, who makes them."""

from __future__ import annotations

import functools
import sys
import time
from threading import get_ident

from .. import codes, imports, own
from ..guard import swallow
from ..phases.loop import loop
from ..phases.tally import Tally
from ..writer import emit, emit_value, fact

OPERATIONS = (
    *("all_reduce", "all_reduce_coalesced", "reduce", "broadcast", "gather", "scatter", "barrier", "monitored_barrier", "send", "recv"),
    *("all_gather", "all_gather_into_tensor", "all_gather_single", "all_gather_coalesced", "_all_gather_base"),
    *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base", "all_to_all", "all_to_all_single"),
    *("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list", "send_object_list", "recv_object_list"),
    "_broadcast_coalesced",  # DDP's buffers
)

_inside = False  # a call inside another one is part of it
_tally = Tally("collectives", most=300)  # calls, nanoseconds and bytes of each operation


def install(torch) -> None:
    """Wrap the collectives as soon as there are any."""
    is_compiling = torch.compiler.is_compiling
    imports.after("torch.distributed", lambda module: _wrap(module, is_compiling))
    loop.add(_tally)


def _wrap(package, is_compiling) -> None:
    module = getattr(package, "distributed_c10d", None)
    if module is None:  # this build of torch has no distributed part
        return
    for name in OPERATIONS:
        original = getattr(module, name, None) or getattr(package, name, None)
        if callable(original):
            _replace(original, name, _timed(original, name, is_compiling))
    work = getattr(module, "Work", None)
    if work is not None:
        work.wait = _waited(work.wait, is_compiling)
    _replace(module.init_process_group, "init_process_group", _joined(module.init_process_group, module))


def _replace(original, name: str, wrapped) -> None:
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.distributed") and getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, wrapped)


def _joined(original, module):
    @functools.wraps(original)
    def init_process_group(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            fact("rank", rank=module.get_rank(), world_size=module.get_world_size(), backend=str(module.get_backend()))
        except Exception as error:
            swallow("process group", error)
        return result

    return init_process_group


def _timed(original, operation: str, is_compiling):
    @functools.wraps(original)
    def collective(*args, **kwargs):
        global _inside
        if is_compiling() or _inside or loop.tid != get_ident() or not loop.started:
            return original(*args, **kwargs)
        _inside = True
        began = time.monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            _inside = False
            _note(operation, began, 2 * max(map(_bytes, args[:3]), default=0) + 1)

    return collective


def _waited(original, is_compiling):
    @functools.wraps(original)
    def wait(self, *args, **kwargs):
        global _inside
        if is_compiling() or _inside or loop.tid != get_ident() or not loop.started:
            return original(self, *args, **kwargs)
        _inside = True
        began = time.monotonic_ns()
        try:
            return original(self, *args, **kwargs)
        finally:
            _inside = False
            _note("wait", began, 0)

    return wait


def _bytes(value: object) -> int:
    try:
        if isinstance(value, (list, tuple)):
            return sum(_bytes(item) for item in value)
        return value.numel() * value.element_size() if hasattr(value, "element_size") else 0
    except Exception:
        return 0


def _note(operation: str, began: int, size: int) -> None:
    try:
        ns = time.monotonic_ns() - began
        emit(codes.COLLECTIVE)
        emit_value(ns)
        emit_value(size)
        _tally.add(own.caller(), operation, ns, size // 2)
    except Exception as error:
        swallow("collective", error)
