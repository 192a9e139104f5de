"""Costly calls of the forward pass by themselves, and images in both orders of memory, tried behind the last event of a diagnosed process.

What a call takes inside a step is its own time, and that of cold caches, fresh pages and gradients that are added up. By itself it takes
its own alone. And no table says which order of memory suits a program's images on this CPU: that depends on channels, kernel sizes and
the processor. So calls are remembered by shapes and plain arguments, and made once more, forward and backward, on numbers that count up:
no tensor of the program is used, and random states are as before.
"""

from __future__ import annotations

import math
import sys

from .. import process
from ..environment import capture
from ..guard import swallow
from ..phases.loop import loop
from ..runqueue import clock
from ..writer import fact

IMAGES = frozenset(
    {"conv2d", "conv_transpose2d", "max_pool2d", "_max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "batch_norm", "interpolate"}
)
MOST_KINDS = 512  # of calls that are remembered
MOST_CALLS = 32  # that are tried, the costliest first
MOST_NS = 1_500_000_000  # of all trials
MOST_NUMBERS = 1 << 25  # that a call is given and makes: the process may have little memory left
BOTH_WAYS = 4  # own: times its forward that a call takes with its backward, when what is to come is guessed
TRIES = 3  # of each order, of which the fastest counts: the first run builds code
PLAIN = (bool, int, float, str, type(None))

_seen: dict = {}  # (name, what it was given) -> [function, arguments, named ones, ns, ns of one], or None where it cannot be made again


def remember(function, name: str, args: tuple, kwargs: dict, described: tuple, ns: int) -> None:
    """A call of the forward pass that took `ns`; `described` as `op_lines` tells it."""
    key = name, described
    if key in _seen:
        if _seen[key] is not None:
            _seen[key][3] += ns
    elif len(_seen) < MOST_KINDS:
        numbers = sum([math.prod(each[0]) for each in (*described[0], *described[1])])
        plain = 0 < numbers <= MOST_NUMBERS and all(
            [layout == "contiguous" and device == "cpu" for _, _, layout, _, device, _ in described[0]]
        )
        _seen[key] = _made_again(function, args, kwargs, ns) if plain else None


def _made_again(function, args: tuple, kwargs: dict, ns: int):
    torch = sys.modules["torch"]
    try:
        return [function, [_form(torch, each) for each in args], {key: _form(torch, each) for key, each in kwargs.items()}, ns, ns]
    except TypeError:
        return None


class _Tensor:
    """The form of a tensor, without its numbers."""

    def __init__(self, tensor) -> None:
        self.shape, self.dtype, self.wants = tuple(tensor.shape), tensor.dtype, tensor.requires_grad

    def made(self, torch, order):
        made = torch.arange(1, 1 + math.prod(self.shape), device="cpu").remainder_(251).to(self.dtype).div_(251).view(self.shape)
        if len(self.shape) == 4:
            made = made.contiguous(memory_format=order)
        return made.requires_grad_(self.wants)


def _form(torch, value: object):
    """Raises `TypeError` for what cannot be made again by its form: other objects, and tensors of whole numbers, which mean something."""
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.is_floating_point():
        return _Tensor(value)
    if type(value) in PLAIN or (type(value) in (tuple, list, torch.Size) and all([type(each) in PLAIN for each in value])):
        return value
    if type(value) in (tuple, list):
        return [_form(torch, each) for each in value]
    raise TypeError(f"an argument of type {type(value).__name__}")


def tell() -> None:
    """Try and write, once, in a process that has trained."""
    known = [(key, each) for key, each in _seen.items() if each is not None]
    if capture != "diagnose" or not known or (process.rank() or 0) > 0:
        return
    try:
        torch = sys.modules["torch"]
        began, tried = clock(), []
        with loop.unseen(), torch.enable_grad(), torch.random.fork_rng(devices=()):
            for (name, described), given in sorted(known, key=lambda item: -item[1][3])[:MOST_CALLS]:
                orders = [torch.contiguous_format]
                if name in IMAGES and len(described[0][0][0]) == 4:
                    orders.append(torch.channels_last)
                if clock() - began + TRIES * len(orders) * BOTH_WAYS * given[4] > MOST_NS:
                    continue
                taken = _taken(torch, *given[:3], orders)
                if taken is not None:
                    tried.append([name, described, *taken])
        fact("call_trials", rows=tried)
    except Exception as error:
        swallow("trials", error)


def _taken(torch, function, args: list, kwargs: dict, orders: list):
    """Nanoseconds of forward and backward in each order; None where the call cannot be made by itself."""
    try:
        runs = [_Run(torch, function, args, kwargs, order) for order in orders]
        return [min(each) for each in zip(*[[run.once() for run in runs] for _ in range(TRIES)], strict=True)]
    except Exception:  # numbers that count up are no probabilities, no distances, …: it stays untried
        return None


class _Run:
    """One call with its backward, on tensors of one order."""

    def __init__(self, torch, function, args: list, kwargs: dict, order) -> None:
        self._torch, self._function, self._order, self._wanted = torch, function, order, []
        self._args = [self._value(each) for each in args]
        self._kwargs = {key: self._value(each) for key, each in kwargs.items()}

    def _value(self, form: object):
        if isinstance(form, list):
            return [self._value(each) for each in form]
        if not isinstance(form, _Tensor):
            return form
        made = form.made(self._torch, self._order)
        if form.wants:
            self._wanted.append(made)
        return made

    def once(self) -> int:
        began = clock()
        made = self._function(*self._args, **self._kwargs)
        made = made[0] if isinstance(made, tuple) else made
        if self._wanted and made.requires_grad:
            engine = self._torch.autograd.Variable._execution_engine  # as `autograd.grad` does, which the probe watches
            engine.run_backward((made,), (self._torch.ones_like(made),), False, False, tuple(self._wanted), True, accumulate_grad=False)
        return max(1, clock() - began)
