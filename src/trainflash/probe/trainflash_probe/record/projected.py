"""Every update's gradient, and what it changed, as some random signed sums: cheap enough for each update, and with a direction.

The sums of two vectors are as far apart as the vectors themselves, within about √(2/32) = 25 %. They are made where the values lie and
fetched at once; signs come from a private generator, so that no random stream of the program's is drawn from.
"""

from __future__ import annotations

import struct

from .tensors import torch_module
from .values import everywhere, scattered

WIDTH = 32
_CHUNK = 1 << 18  # elements converted to float64 at once: they stay in the processor's caches
_MOST = 50_000_000  # values that a processor sums up after each update; of larger models it knows no steps
_SHIFTS = 1 << 16  # places in the table of signs at which a tensor's may begin
_SPREAD = (40503, 30011)  # odd: tensors and chunks that follow each other begin far apart
_signs: dict = {}  # by device


def projected(numbered, form=None):
    """`(sum of squares, signed sums)` of all values of `(number, tensor)`. ValueError where a tensor is sparse and huge.

    With `form` of what it makes of them, value by value.
    """
    torch = torch_module()
    totals: dict = {}
    with torch.no_grad():
        for number, tensor in numbered:
            flat = everywhere(tensor)
            home = flat.device if flat.device.type in ("cpu", "cuda") else torch.device("cpu")  # others may lack float64
            if home not in totals:
                totals[home] = torch.zeros(WIDTH + 1, dtype=torch.float64, device=home)
            for chunk, start in enumerate(range(0, flat.numel(), _CHUNK)):
                part = flat[start : start + _CHUNK].to(home, torch.float64)
                part = part if form is None else form(part)
                _add(totals[home], part, (_SPREAD[0] * number + _SPREAD[1] * chunk) % _SHIFTS)
        found = [sum(column) for column in zip(*[total.tolist() for total in totals.values()])] or [0.0] * (WIDTH + 1)
    return found[WIDTH], found[:WIDTH]


def scaled(tensors):
    """Signed sums of floating-point tensors, each divided by its own norm, in hexadecimal as float64; None where one is sparse and huge."""
    if any(scattered(tensor) for tensor in tensors):
        return None
    total = [0.0] * WIDTH
    for number, tensor in enumerate(tensors):
        squares, sums = projected([(number, tensor)])
        if squares:
            total = [before + each / squares**0.5 for before, each in zip(total, sums)]
    return struct.pack(f"<{WIDTH}d", *total).hex()


def _add(total, part, shift):
    count = part.numel()
    signed = part * _table(part.device)[shift : shift + count]
    rest = count % WIDTH
    if count - rest:
        total[:WIDTH] += signed[: count - rest].view(-1, WIDTH).sum(0)
    total[:rest] += signed[count - rest :]
    total[WIDTH] += part.dot(part)


def _table(device):
    torch = torch_module()
    if device not in _signs:
        private = torch.Generator(device="cpu")
        private.manual_seed(0x51C7)
        drawn = torch.randint(0, 2, (_CHUNK + _SHIFTS,), generator=private, dtype=torch.int8, device="cpu")
        _signs[device] = (drawn * 2 - 1).to(device, torch.float64)
    return _signs[device]


def packed(sums):
    """Signed sums in hexadecimal, as float32: what is too large for that is infinite."""
    small = torch_module().tensor(sums, dtype=torch_module().float64, device="cpu").float().tolist()
    return struct.pack(f"<{WIDTH}f", *small).hex()


class Steps:
    """What each update of one optimizer changed, from one update to the next."""

    def __init__(self):
        self._parameters: list = []
        self._before = None

    def begin(self, parameters):
        """Before an update; its parameters, in the order in which they are numbered."""
        if self._before is None or [id(each) for each in parameters] != self._parameters:
            self._parameters = [id(each) for each in parameters]
            slow = sum(int(each.numel()) for each in parameters if each.device.type == "cpu") > _MOST
            self._before = None if slow else projected(enumerate(parameters))[1]

    def end(self, parameters):
        """After it: what has changed since the update before, packed."""
        before, self._before = self._before, None
        if before is None:
            return None
        self._before = projected(enumerate(parameters))[1]
        return packed([new - old for old, new in zip(before, self._before)])
