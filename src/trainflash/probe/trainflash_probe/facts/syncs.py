"""Calls that copy a tensor to the host or wait for the device, by the owner's line that makes them.

Installed only where a CUDA device is visible: without one nothing waits, and each call would pay for being counted. What frees the
allocator's cache is counted everywhere: it is rare.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from threading import get_ident

from .. import own
from ..guard import swallow
from ..phases import device
from ..phases.loop import loop
from ..writer import fact

METHODS = {
    "item": "item",
    "tolist": "tolist",
    "cpu": "cpu",
    "numpy": "numpy",
    "nonzero": "nonzero",
    "__bool__": "bool",
    "__float__": "item",
    "__int__": "item",
    "__index__": "item",
    "__repr__": "print",
    "__format__": "print",
}
MAX_LINES = 500

_clock = time.monotonic_ns


class SyncFacts:
    """[count, ns] of each (place, call, phase, on a device), cumulative. A call inside another one is the outer one's."""

    def __init__(self) -> None:
        self.lines: dict = {}
        self._known: dict = {}
        self._inside = False

    def method(self, original, call: str, is_compiling, waits):
        """A method of a tensor; `waits(tensor)` says whether it is counted."""

        @functools.wraps(original)
        def counted(self_, *args, **kwargs):
            if is_compiling() or self._inside or loop.tid != get_ident() or not loop.started or not waits(self_):
                return original(self_, *args, **kwargs)
            return self._timed(original, call, bool(self_.is_cuda), (self_, *args), kwargs)

        return counted

    def to(self, original, is_compiling, waits, torch):
        """`Tensor.to` a host from a device, unless it does not block."""

        @functools.wraps(original)
        def to(self_, *args, **kwargs):
            if is_compiling() or self._inside or loop.tid != get_ident() or not loop.started or not waits(self_):
                return original(self_, *args, **kwargs)
            target = kwargs.get("device", args[0] if args else None)
            name = target.type if isinstance(target, torch.device) else target
            if name != "cpu" or kwargs.get("non_blocking"):
                return original(self_, *args, **kwargs)
            return self._timed(original, "cpu", bool(self_.is_cuda), (self_, *args), kwargs)

        return to

    def function(self, original, call: str, is_compiling):
        """A function that waits for the whole device."""

        @functools.wraps(original)
        def counted(*args, **kwargs):
            if is_compiling() or self._inside or loop.tid != get_ident() or not loop.started:
                return original(*args, **kwargs)
            return self._timed(original, call, True, args, kwargs)

        return counted

    def watch(self, torch, everywhere: bool = False) -> None:
        """Wrap what waits; with `everywhere`, tensors of the host are counted too."""
        is_compiling, tensor, cuda = torch.compiler.is_compiling, torch.Tensor, torch.cuda

        plain = (tensor, torch.nn.Parameter)  # a subclass may count what is asked of it, even where it lives

        def waits(value) -> bool:
            return type(value) in plain and (everywhere or value.is_cuda)

        for name, call in METHODS.items():
            setattr(tensor, name, self.method(getattr(tensor, name), call, is_compiling, waits))
        tensor.to = self.to(tensor.to, is_compiling, waits, torch)
        cuda.synchronize = self.function(cuda.synchronize, "synchronize", is_compiling)
        for owner in (cuda.Stream, cuda.Event):
            owner.synchronize = self.function(owner.synchronize, "synchronize", is_compiling)

    def _timed(self, original, call: str, on_device: bool, args: tuple, kwargs: dict):
        self._inside = True
        if on_device:
            device.wait_begins()
        began = _clock()
        try:
            return original(*args, **kwargs)
        finally:
            ns = _clock() - began
            self._inside = False
            if on_device:
                device.wait_ended()
            try:
                self._note(call, on_device, ns)
            except Exception as error:
                swallow("sync", error)

    def _note(self, call: str, on_device: bool, ns: int) -> None:
        key = (self._place(own.own_frame(sys._getframe(3))), call, phase(), on_device)
        entry = self.lines.get(key)
        if entry is None:
            if len(self.lines) >= MAX_LINES:
                return
            entry = self.lines[key] = [0, 0]
        entry[0] += 1
        entry[1] += ns

    def _place(self, frame):
        if frame is None:
            return None
        key = (frame.f_code, frame.f_lineno)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = tuple(own.place_of_frame(frame))
        return place

    def write(self) -> None:
        """Cumulative figures."""
        fact("syncs", t=_clock(), rows=[[*key, count, ns] for key, (count, ns) in self.lines.items()])


def phase() -> str:
    """The phase that the training thread is in, as the hooks know it."""
    if loop.evaluating or loop.eval_depth:
        return "Eval"
    for name, inside in (("Log", loop.in_log), ("Ckpt", loop.in_ckpt), ("Data", loop.in_data), ("Bwd", loop.in_bwd), ("Fwd", loop.in_fwd)):
        if inside:
            return name
    return "Opt" if loop.in_opt else "Other"


def _device_is_visible(torch) -> bool:
    return torch.version.cuda is not None and any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"))


def install(torch) -> SyncFacts:
    """Wrap what waits where there is something to wait for."""
    source = SyncFacts()
    torch.cuda.empty_cache = source.function(torch.cuda.empty_cache, "empty_cache", torch.compiler.is_compiling)
    if _device_is_visible(torch):
        source.watch(torch)
    return source
