"""Images with their channels last that the program copies into torch's default order, and what that order costs its convolutions.

The order that `x.movedim(-1, 1)` leaves is torch's `channels_last`; `.contiguous()` behind it copies it away. Which of both orders is
faster on a CPU has to be tried: where such copies are made in the forward pass, convolutions of the same step are run in both, without
gradients.
"""

from __future__ import annotations

from ..guard import swallow
from ..phases.loop import loop
from ..runqueue import clock
from ..writer import fact
from .askers import asker

MOST_NS = 150_000_000  # of trials in one step
TRIES = 2  # of each order, of which the faster one counts: the first run builds code


class UndoneLayouts:
    """What one step shows of it."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._calls: dict = {}  # place -> copies
        self._tried = self._default_ns = self._last_ns = self._spent = 0

    def copied(self, original, args: tuple, kwargs: dict, caller) -> object:
        """In place of `Tensor.contiguous`."""
        try:
            if loop.in_fwd and len(args) == 1 and not kwargs and self._has_channels_last(args[0]):
                place = asker(caller)
                if place is not None:
                    self._calls[tuple(place)] = self._calls.get(tuple(place), 0) + 1
        except Exception as error:
            swallow("layouts", error)
        return original(*args, **kwargs)

    def _has_channels_last(self, tensor) -> bool:
        plain = type(tensor) is self._torch.Tensor and tensor.dim() == 4 and tensor.device.type == "cpu"
        return plain and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=self._torch.channels_last)

    def convolved(self, convolution, args: tuple, kwargs: dict) -> None:
        """A convolution of the forward pass was run with these."""
        kinds = (self._torch.Tensor, self._torch.nn.Parameter)
        plain = len(args) > 1 and all([type(each) in kinds and each.dim() == 4 for each in args[:2]])
        if not self._calls or self._spent > MOST_NS or not plain or not args[0].is_contiguous():
            return
        began = clock()
        with self._torch.no_grad():
            last = [each.contiguous(memory_format=self._torch.channels_last) for each in args[:2]]
            default_ns = self._fastest(convolution, args, kwargs)
            last_ns = self._fastest(convolution, (*last, *args[2:]), kwargs)
        self._tried += 1
        self._default_ns += default_ns
        self._last_ns += last_ns
        self._spent += clock() - began

    def _fastest(self, convolution, args: tuple, kwargs: dict) -> int:
        taken = []
        for _ in range(TRIES):
            began = clock()
            convolution(*args, **kwargs)
            taken.append(max(1, clock() - began))  # the kernel may tell of waiting after the work that it belongs to
        return min(taken)

    def write(self, step: int) -> None:
        """One fact, where there was such a copy and a convolution behind it."""
        if self._tried:
            place, _ = max(self._calls.items(), key=lambda item: item[1])
            taken = {"calls": sum(self._calls.values()), "default_ns": self._default_ns, "last_ns": self._last_ns}
            fact("undone_layouts", step=step, at=list(place), tried=self._tried, **taken)
