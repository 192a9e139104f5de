"""Which fields of a batch end in columns that are padding in all of its rows, and with what they are filled."""

from __future__ import annotations

from ..objects import is_tensor
from .padding import rows_of

PLAIN = (str, bytes, int, float, bool, type(None))
INFINITE = float("inf")  # no JSON holds it


class Columns:
    """Fields of a plain batch that are as wide as its main input, each with the one value of its common padding."""

    def __init__(self) -> None:
        self._fills: dict = {}  # key -> value
        self._width = None
        self._unclear = False  # a field of that width is no sequence, or is filled in more than one way; or widths differ

    def look(self, batch: object, main) -> None:
        """`main` is the tensor of the batch whose rows are sequences, (rows, width)."""
        if self._unclear or main.dim() != 2 or not main.numel():
            return
        try:
            self._look(batch, main)
        except (RuntimeError, TypeError, ValueError, ImportError):  # a type that numpy does not have, or no numpy
            self._unclear = True

    def _look(self, batch: object, main) -> None:
        fields = _fields(batch)
        width = main.shape[1]
        self._width = self._width or width
        wide = [(key, tensor) for key, tensor in fields or () if width in tuple(tensor.shape)[1:]]
        if width != self._width or not any([tensor is main for _, tensor in wide]) or not all([_readable(tensor) for _, tensor in wide]):
            self._unclear = True
            return
        ends = {key: _end(rows_of(tensor)) for key, tensor in wide}
        least = next(ends[key][0] for key, tensor in wide if tensor is main)
        if not least:
            return  # a sample fills the width: nothing to be seen
        for key, (length, value) in ends.items():
            if length < least or self._fills.setdefault(key, value) != value or abs(value) == INFINITE:
                self._unclear = True

    def found(self) -> list:
        """[key, fill, width] of each field: a dictionary's key, a place in a list, None for a batch of one tensor. Empty: not clear."""
        return [] if self._unclear else [[key, value, self._width] for key, value in self._fills.items()]


def _fields(batch: object):
    """(key, tensor) of a batch as torch's own collate function makes them; None for any other."""
    if is_tensor(batch):
        return [(None, batch)]
    if type(batch) is dict:
        pairs = list(batch.items())
    elif type(batch) in (list, tuple):
        pairs = list(enumerate(batch))
    else:
        return None
    others = [value for _, value in pairs if not is_tensor(value)]
    if not all([type(value) in (list, tuple) and all([isinstance(each, PLAIN) for each in value]) for value in others]):
        return None
    if any([not isinstance(key, (str, int)) for key, _ in pairs]):
        return None
    return [pair for pair in pairs if is_tensor(pair[1])]


def _readable(tensor) -> bool:
    return tensor.dim() == 2 and tensor.numel() > 0 and tensor.device.type == "cpu" and not tensor.is_sparse


def _end(rows) -> tuple:
    """(number of last columns that hold one value in all rows, that value)."""
    value = rows[0, -1]
    differs = (rows != value).any(axis=0)[::-1]
    return int(differs.argmax() if differs.any() else rows.shape[1]), value.item()
