"""What convolutions take to be set up for a shape that they have not seen: each of one step is run once more, for its time alone.

On a CPU, oneDNN builds code for each shape of a convolution and keeps that of some shapes; the second run finds it. Not under a
mode of the owner's, which may count what runs and makes the first run longer.
"""

from __future__ import annotations

from ..guard import swallow
from ..phases.loop import loop
from ..runqueue import clock
from ..writer import fact
from . import entry_points
from .undone_layouts import UndoneLayouts

NAMES = tuple(f"conv{turned}{dimensions}d" for turned in ("", "_transpose") for dimensions in (1, 2, 3))
MOST_NS = 100_000_000  # of repeated runs in one step
LEAST_NS = 200_000  # measured: building code for a shape takes about 700 µs, and a warm cache saves up to 100 µs
TIMES = 1.5  # and the first run takes so many times the second; measured 3.7 with new shapes, and 1.2 in all with known ones


class ConvolutionSetup:
    """Entry points of convolutions, watched for one step; what the forward pass's took longer than once more, and copies of layouts."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._points = entry_points.EntryPoints(torch)
        self._layouts = UndoneLayouts(torch)
        self._calls = self._set_up = self._setup = self._again = 0

    def _modes(self) -> bool:
        return bool(self._torch._C._len_torch_dispatch_stack() or entry_points.others())

    def begin(self) -> None:
        """Watch the entry points."""
        for owner in (self._torch, self._torch.nn.functional):
            for name in NAMES:
                self._points.watch(owner, name, self._timed)
        self._points.watch(self._torch.Tensor, "contiguous", self._layouts.copied)

    def _timed(self, original, args: tuple, kwargs: dict, caller) -> object:
        if not loop.in_fwd or self._again > MOST_NS or self._modes():
            return original(*args, **kwargs)
        began = clock()
        made = original(*args, **kwargs)
        first = clock() - began
        try:
            self._once_more(original, made, first, args, kwargs)
        except Exception as error:
            swallow("convolutions", error)
        return made

    def _once_more(self, original, made, first: int, args: tuple, kwargs: dict) -> None:
        torch = self._torch
        if type(made) is not torch.Tensor or made.device.type != "cpu" or torch._C._functorch.is_functorch_wrapped_tensor(made):
            return
        with torch.no_grad():
            began = clock()
            original(*args, **kwargs)
            again = clock() - began
        self._again += again
        self._calls += 1
        if first - again >= LEAST_NS and first >= TIMES * again:
            self._set_up += 1
            self._setup += first - again

    def end(self, step: int) -> None:
        """Put everything back, and write; the step is no usual one."""
        self._points.restore()
        if self._calls:
            fact("slowed", step=step - 1)
            fact("convolution_setup", step=step - 1, calls=self._calls, set_up=self._set_up, ns=self._setup)
            self._layouts.write(step - 1)
