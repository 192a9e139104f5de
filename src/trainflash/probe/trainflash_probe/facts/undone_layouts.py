"""Images with their channels last that the program copies into torch's default order in its forward pass.

The order that `x.movedim(-1, 1)` leaves is torch's `channels_last`; `.contiguous()` behind it copies it away. Which of both orders is
faster on a CPU has to be tried (see `call_trials`).
"""

from __future__ import annotations

from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact
from .askers import asker


class UndoneLayouts:
    """What one step shows of it."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._calls: dict = {}  # place -> copies

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

    def write(self, step: int) -> None:
        """One fact, where there was such a copy."""
        if self._calls:
            place, _ = max(self._calls.items(), key=lambda item: item[1])
            fact("undone_layouts", step=step, at=list(place), calls=sum(self._calls.values()))
