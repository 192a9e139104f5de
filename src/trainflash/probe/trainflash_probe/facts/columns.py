"""Which fields of a batch end in columns that are padding in all of its rows, and with what they are filled."""

from __future__ import annotations

from types import GeneratorType, MethodWrapperType

from .. import own
from ..objects import is_tensor
from .padding import rows_of

PLAIN = (str, bytes, int, float, bool, type(None))
INFINITE = float("inf")  # no JSON holds it


class Columns:
    """Fields of a plain batch that are as wide as its main input, each with the one value of its common padding."""

    def __init__(self) -> None:
        self._fills: dict = {}  # key -> (value, number of dimensions)
        self._width = None
        self._makers: set = set()  # codes of functions of the program that made them, None for a loader
        self._unclear = False  # a field of that width is no sequence, or is filled in more than one way; or widths or makers differ

    def look(self, batch: object, main, made_by=None) -> None:
        """`main` is the tensor of the batch whose rows are sequences, (rows, width, …); `made_by` the function, or the `__next__` of the
        generator, that gave it, None for a loader."""
        if self._unclear or main.dim() < 2 or not main.numel():
            return
        try:
            self._look(batch, main)
            self._note_maker(made_by)
        except (RuntimeError, TypeError, ValueError, ImportError):  # a type that numpy does not have, or no numpy
            self._unclear = True

    def _look(self, batch: object, main) -> None:
        fields = _fields(batch)
        width = main.shape[1]
        self._width = self._width or width
        wide = [(key, tensor) for key, tensor in fields or () if width in tuple(tensor.shape)[1:]]
        known = all([tensor.shape[1] == width and _readable(tensor) for _, tensor in wide])
        if width != self._width or not any([tensor is main for _, tensor in wide]) or not known:
            self._unclear = True
            return
        rows = {key: rows_of(tensor) for key, tensor in wide}
        fewest = min([len(each) for each in rows.values()])
        ends = {key: _end(each[:fewest]) for key, each in rows.items()}
        least = next(ends[key][0] for key, tensor in wide if tensor is main)
        if not least:
            return  # a sample fills the width: nothing to be seen
        for key, tensor in wide:
            length, value = ends[key]
            fill = value, tensor.dim()
            if length < least or self._fills.setdefault(key, fill) != fill or abs(value) == INFINITE:
                self._unclear = True

    def _note_maker(self, made_by) -> None:
        steps = type(made_by) is MethodWrapperType and type(made_by.__self__) is GeneratorType  # `generator.__next__`
        code = made_by.__self__.gi_code if steps else own.code_of(made_by)
        known = made_by is None or (code is not None and own.is_own(code))
        self._makers.add(code)
        if not known or len(self._makers) > 1:
            self._unclear = True

    def found(self) -> tuple:
        """[key, fill, width, dimensions] of each field, and the place of what made them, None for a loader.

        The key is a dictionary's, a place in a list, or None for a batch of one tensor. No field: not clear.
        """
        fields = [] if self._unclear else [[key, value, self._width, dims] for key, (value, dims) in self._fills.items()]
        code = next(iter(self._makers)) if fields else None
        return fields, None if code is None else own.place_of_code(code)


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
    of_rows = tensor.numel() > 0 and tensor.shape[1] not in tuple(tensor.shape)[2:]
    return of_rows and tensor.device.type == "cpu" and not tensor.is_sparse


def _end(rows) -> tuple:
    """(number of last columns that hold one value in all rows, that value)."""
    rows = rows.reshape(*rows.shape[:2], -1)
    value = rows[0, -1, 0]
    differs = (rows != value).any(axis=(0, 2))[::-1]
    return int(differs.argmax() if differs.any() else rows.shape[1]), value.item()
