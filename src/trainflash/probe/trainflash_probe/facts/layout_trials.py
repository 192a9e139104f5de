"""Which order of memory suits this program's images on this CPU: its convolutions, poolings and norms are tried in both.

No table says which: it depends on channels, kernel sizes and the processor. Costly calls that were given images in torch's default order
are remembered by shapes and plain arguments, and made once more at the very end of a diagnosed process, behind its last event, forward and
backward, in that order and in `channels_last`, on numbers that count up: no random number is drawn, and no tensor of the program is used.
"""

from __future__ import annotations

import sys

from .. import process
from ..environment import capture
from ..guard import swallow
from ..phases.loop import loop
from ..runqueue import clock
from ..writer import fact

NAMES = frozenset(
    {"conv2d", "conv_transpose2d", "max_pool2d", "_max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "batch_norm", "interpolate"}
)
MOST_CALLS = 24  # kinds of calls, the costliest first
MOST_NS = 1_500_000_000  # of all trials
TRIES = 3  # of each order, of which the fastest counts: the first run builds code
_PLAIN = (bool, int, float, str, type(None))

_seen: dict = {}  # (name, what it was given) -> [function, arguments, named ones, ns]


def remember(function, name: str, args: tuple, kwargs: dict, described: tuple, ns: int) -> None:
    """A call of the forward pass that took `ns`; `described` as `op_lines` tells it."""
    first = described[0][0] if described[0] else None
    if name not in NAMES or first is None or len(first[0]) != 4 or first[2] != "contiguous" or first[4] != "cpu":
        return
    known = _seen.get((name, described))
    if known is not None:
        known[3] += ns
        return
    torch = sys.modules["torch"]
    given = [_form(torch, each) for each in args], {key: _form(torch, each) for key, each in kwargs.items()}
    _seen[name, described] = [function, *given, ns]


class _Tensor:
    """The form of a tensor, without its numbers."""

    def __init__(self, tensor) -> None:
        self.shape, self.dtype, self.wants = tuple(tensor.shape), tensor.dtype, tensor.requires_grad

    def made(self, torch, order):
        numbers = torch.arange(1, 1 + _elements(self.shape), device="cpu").remainder_(251).to(self.dtype).div_(251)
        made = numbers.view(self.shape)
        if len(self.shape) == 4:
            made = made.contiguous(memory_format=order)
        return made.requires_grad_(self.wants)


def _elements(shape: tuple) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _form(torch, value: object):
    if isinstance(value, torch.Tensor):
        return _Tensor(value)
    if type(value) in _PLAIN or (type(value) in (tuple, list, torch.Size) and all([type(each) in _PLAIN for each in value])):
        return value
    raise TypeError(f"an argument of type {type(value).__name__}")


def tell() -> None:
    """Try and write, once, in a process that has trained."""
    if capture != "diagnose" or not _seen or (process.rank() or 0) > 0:
        return
    try:
        torch = sys.modules["torch"]
        began, tried = clock(), []
        with loop.unseen(), torch.enable_grad():
            for (name, described), given in sorted(_seen.items(), key=lambda item: -item[1][3])[:MOST_CALLS]:
                if clock() - began > MOST_NS:
                    break
                taken = _both(torch, *given[:3])
                if taken is not None:
                    tried.append([name, described, *taken])
        fact("layout_trials", rows=tried)
    except Exception as error:
        swallow("layouts", error)


def _both(torch, function, args: list, kwargs: dict):
    """(nanoseconds in torch's default order, in channels_last) of forward and backward; None where it cannot be run by itself."""
    orders = torch.contiguous_format, torch.channels_last
    runs = [_Run(torch, function, args, kwargs, order) for order in orders]
    try:
        taken = [[run.once() for run in runs] for _ in range(TRIES)]
    except Exception as error:
        swallow("layouts", error)
        return None
    return tuple(min(each) for each in zip(*taken, strict=True))


class _Run:
    """One call with its backward, on tensors of one order."""

    def __init__(self, torch, function, args: list, kwargs: dict, order) -> None:
        self._torch, self._function, self._order = torch, function, order
        self._args = [self._value(each) for each in args]
        self._kwargs = {key: self._value(each) for key, each in kwargs.items()}
        self._wanted = [each for each in (*self._args, *self._kwargs.values()) if isinstance(each, torch.Tensor) and each.requires_grad]

    def _value(self, form: object):
        return form.made(self._torch, self._order) if isinstance(form, _Tensor) else form

    def once(self) -> int:
        began = clock()
        made = self._function(*self._args, **self._kwargs)
        made = made[0] if isinstance(made, tuple) else made
        if self._wanted and made.requires_grad:
            engine = self._torch.autograd.Variable._execution_engine  # as `autograd.grad` does, which the probe watches
            engine.run_backward((made,), (self._torch.ones_like(made),), False, False, tuple(self._wanted), True, accumulate_grad=False)
        return max(1, clock() - began)
