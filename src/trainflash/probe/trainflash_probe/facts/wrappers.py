"""Hooks on what makes a model parallel: who wraps it and how, and in DDP when the last gradient of a backward was ready.

DDP's reducer notes when each gradient became ready, counted from its preparation at the end of forward. What a backward takes after the
last one is communication that it could not hide. Nothing is added to the graph or to parameters.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from threading import get_ident

from .. import codes, imports, inside, own
from ..guard import swallow
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import emit, emit_value, fact, is_open

_torch = None
_ddp: list = []  # (weak reference to a wrapped model, bytes of its gradients)
_prepared: dict = {}  # id of a reducer -> when its newest forward ended
_stats: dict = {}  # id of a reducer -> what it said of its newest backward
_told: set = set()


def install(torch) -> None:
    """Wait for wrappers: what they need is hooked when the first one is used."""
    global _torch
    _torch = torch
    imports.after("torch.nn.parallel.distributed", _data_parallel)
    imports.after("torch.distributed.fsdp", _fully_sharded)
    loop.add(DataParallelFacts())


def _data_parallel(module) -> None:
    wrapper = module.DistributedDataParallel
    wrapper.__init__ = _constructed(wrapper.__init__, "DDP", _add_data_parallel)


def _fully_sharded(module) -> None:
    wrapper = getattr(module, "FullyShardedDataParallel", None)
    if wrapper is not None:
        wrapper.__init__ = _constructed(wrapper.__init__, "FSDP")
    for name in ("torch.distributed._composable.fsdp", "torch.distributed.fsdp"):
        function = getattr(sys.modules.get(name), "fully_shard", None)
        if function is not None and not hasattr(function, "_trainflash"):
            wrapped = _called(function, "FSDP2")
            for each in [each for key, each in list(sys.modules.items()) if key.startswith("torch.distributed")]:
                if getattr(each, "__dict__", {}).get("fully_shard") is function:
                    each.fully_shard = wrapped


def _tell(name: str) -> None:
    """Name the wrapper and the owner's line, the first time each is used."""
    if name not in _told:
        _told.add(name)
        fact("wrapper", name=name, at=own.caller())


def _constructed(original, name: str, then=None):
    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            _tell(name)
            if then is not None:
                then(self)
        except Exception as error:
            swallow(f"construction of {name}", error)

    return __init__


def _called(original, name: str):
    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            _tell(name)
        except Exception as error:
            swallow(f"call of {name}", error)
        return result

    wrapped._trainflash = True
    return wrapped


def _add_data_parallel(model) -> None:
    if not _ddp:
        _listen(type(model.reducer), _torch.compiler.is_compiling)
    _ddp.append((weakref.ref(model), _gradient_bytes(model)))


def _listen(reducer_class, is_compiling) -> None:
    if not hasattr(reducer_class, "get_backward_stats") or not hasattr(reducer_class, "prepare_for_backward"):
        return
    reducer_class.prepare_for_backward = _preparing(reducer_class.prepare_for_backward, is_compiling)
    inside.hook(_torch.autograd.backward, *_backward(is_compiling))


def _preparing(original, is_compiling):
    @functools.wraps(original)
    def prepare_for_backward(self, *args, **kwargs):
        if not is_compiling():
            _prepared[id(self)] = time.monotonic_ns()
        return original(self, *args, **kwargs)

    return prepare_for_backward


def _backward(is_compiling) -> tuple:
    def enter():
        return 0 if is_compiling() or loop.in_bwd or loop.tid != get_ident() else time.monotonic_ns()

    def leave(began: int) -> None:
        try:
            _reduced(began, time.monotonic_ns())
        except Exception as error:
            swallow("reduction", error)

    return enter, leave


def _reduced(began: int, ended: int) -> None:
    for entry in list(_ddp):
        model = entry[0]()
        if model is None:
            _ddp.remove(entry)
            continue
        key = id(model.reducer)
        if key not in _prepared:  # accumulated without reducing
            continue
        stats = model.reducer.get_backward_stats()
        if stats == _stats.get(key) or not any(stats):  # not part of this backward
            continue
        _stats[key] = stats
        ready = max(began, _prepared.pop(key) + max(stats))
        emit(codes.REDUCED)
        emit_value(max(0, ended - ready))
        emit_value(entry[1])


def _gradient_bytes(model) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters() if parameter.requires_grad)


class DataParallelFacts(Observer):
    """Writes what DDP says of itself, now and then and at exit; a reader takes the newest."""

    def on_interval(self, step: int) -> None:
        """Write the figures so far."""
        self.on_exit()

    def on_exit(self) -> None:
        """Write the figures so far."""
        models = [(size, model) for model, size in ((reference(), size) for reference, size in _ddp) if model is not None]
        if models and is_open():
            _write(max(models, key=lambda each: each[0])[1])


def _write(model) -> None:
    said = model._get_ddp_logging_data()
    buckets = said.get("rebuilt_bucket_sizes") or said.get("bucket_sizes") or ""
    fact(
        "ddp",
        find_unused_parameters=bool(model.find_unused_parameters),
        static_graph=bool(model.static_graph),
        bucket_cap_bytes=said.get("bucket_cap_bytes"),
        buckets=len(str(buckets).split(",")) if buckets else None,
        bytes=said.get("total_parameter_size_bytes"),
        comm_ns=said.get("avg_backward_comm_time"),
        overlap_ns=said.get("avg_backward_compute_comm_overlap_time"),
    )
