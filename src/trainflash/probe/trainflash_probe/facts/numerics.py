"""Number formats and layouts of training: what the first steps show, and torch's switches."""

from __future__ import annotations

import functools
from collections import Counter

from ..guard import swallow
from ..nested import is_complete, tensors_in
from ..parts import modules_in, named_own_parameters, parameters_in
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import compiles, formats

LOOK_UNTIL = 8  # completed steps
TURNED_FROM = 1 << 14  # elements of a weight, from which on the way it lies in memory can matter


class NumericsFacts(Observer):
    """Looks at roots and their inputs in the first steps; the switches are read with each write."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._elements: Counter = Counter()  # dtype -> elements of trained roots
        self._roots: set = set()
        self._convolutions = 0
        self._turned: dict = {}  # "Class.name (shape)" of weights whose rows do not lie one behind the other -> elements
        self._layouts: Counter = Counter()
        self._autocast: Counter = Counter()
        self._cuda = False
        self._unpatch = None

    def watch_autocast(self) -> None:
        """Autocast is often entered inside a wrapped forward: note what is entered on the training thread, in the first steps only."""
        autocast = self._torch.amp.autocast_mode.autocast
        original = autocast.__enter__

        @functools.wraps(original)
        def __enter__(entered):
            try:
                if getattr(entered, "_enabled", False) and loop.started and not loop.evaluating and self._torch.is_grad_enabled():
                    self._autocast[formats.named(entered.fast_dtype)] += 1
            except Exception as error:
                swallow("autocast", error)
            return original(entered)

        def unpatch() -> None:
            if autocast.__enter__ is __enter__:
                autocast.__enter__ = original

        autocast.__enter__ = __enter__
        self._unpatch = unpatch

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A root that is trained."""
        if not loop.fed_by_forward or loop.evaluating:
            return
        if id(module) not in self._roots and is_complete(module):
            self._roots.add(id(module))
            self._look_at(module)
        for kind in ("cuda", "cpu"):
            if (kind == "cpu" or self._cuda) and self._torch.is_autocast_enabled(kind):
                self._autocast[formats.named(self._torch.get_autocast_dtype(kind))] += 1
        for tensor in tensors_in([*args, *kwargs.values()]):
            if tensor.dim() == 4 and tensor.is_floating_point():
                self._note_layout(tensor)

    def _look_at(self, module) -> None:
        convolutions = (self._torch.nn.Conv2d, self._torch.nn.Conv3d)
        for parameter in parameters_in(module):
            if parameter.requires_grad:
                self._elements[formats.named(parameter.dtype)] += parameter.numel()
                self._cuda = self._cuda or parameter.is_cuda
        for part in modules_in(module):
            if isinstance(part, convolutions):
                self._convolutions += 1
                if part.weight.dim() == 4 and part.weight.is_contiguous(memory_format=self._torch.channels_last):
                    self._note_layout(part.weight)  # channels-last weights make channels-last outputs, whatever the input
            for name, parameter in named_own_parameters(part):
                if parameter.requires_grad and parameter.numel() >= TURNED_FROM and not self._lies_well(parameter):
                    shape = " × ".join(map(str, parameter.shape))
                    self._turned[f"{type(part).__name__}.{name} ({shape})"] = parameter.numel()

    def _lies_well(self, parameter) -> bool:
        last = {4: self._torch.channels_last, 5: self._torch.channels_last_3d}.get(parameter.dim())
        strided = parameter.layout == self._torch.strided
        return not strided or parameter.is_contiguous() or (last is not None and parameter.is_contiguous(memory_format=last))

    def _note_layout(self, tensor) -> None:
        last = tensor.is_contiguous(memory_format=self._torch.channels_last)
        if last != tensor.is_contiguous():  # with one channel or one pixel both are true
            self._layouts[last] += 1

    def on_boundary(self, step: int) -> None:
        """Enough seen."""
        if step >= LOOK_UNTIL:
            loop.remove(self.on_forward, self.on_boundary)
            if self._unpatch is not None:
                self._unpatch()

    def write(self) -> None:
        """What was seen, and the switches as they are now."""
        if not self._elements:
            return
        torch, usual = self._torch, self._elements.most_common(1)[0][0]
        cuda = self._cuda and torch.cuda.is_initialized()
        fact(
            "numerics",
            parameter_dtype=usual,
            chosen_at=formats.place_of(usual),
            autocast=next((name for name, _ in self._autocast.most_common(1)), None),
            matmul_precision=_read(torch.get_float32_matmul_precision),
            tf32_matmul=_read(lambda: torch.backends.cuda.matmul.allow_tf32) if cuda else None,
            tf32_cudnn=_read(lambda: torch.backends.cudnn.allow_tf32) if cuda else None,
            capability=_read(torch.cuda.get_device_capability) if cuda else None,
            bf16=_read(lambda: torch.cuda.get_device_capability() >= (8, 0) if cuda else _cpu_bf16(torch)),
            cudnn_benchmark=_read(lambda: torch.backends.cudnn.benchmark) if cuda else None,
            deterministic=bool(torch.are_deterministic_algorithms_enabled() or (cuda and torch.backends.cudnn.deterministic)),
            convolutions=self._convolutions,
            channels_last=self._layouts[True] > 0 if self._layouts else None,
            compiled=compiles.source.used,
            turned=max(self._turned, key=lambda name: self._turned[name], default=None),
        )


def _cpu_bf16(torch):
    """Whether this CPU multiplies bfloat16 in hardware; None where torch does not say."""
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        test = getattr(getattr(torch, "cpu", None), name, None)
        if test is None:
            return None
        if test():
            return True
    return False


def _read(switch):
    try:
        return switch()
    except Exception as error:  # torch refuses to say where old and new switches were mixed
        swallow("numerics", error)
        return None


def install(torch) -> NumericsFacts:
    """Listen for the first steps, and for who chooses a format."""
    formats.install(torch)
    source = NumericsFacts(torch)
    source.watch_autocast()
    loop.add(source)
    return source
