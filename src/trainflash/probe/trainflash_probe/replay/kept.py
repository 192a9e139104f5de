"""Results of the program kept for a what-if replay: bounded, copied, and handed out again so that edits in place cannot spoil them.

A tensor that was handed out is the kept one behind a fresh handle, because copying it would cost time that no fix costs. Its version
counter tells when the program writes into what it gets; from then on copies are handed out.
"""

from __future__ import annotations

import copy
import os
import pickle

from ..guard import swallow

MAX_BYTES = 64 << 20  # of one process; with the usual two to four workers that stays near 256 MB in all
MAX_ITEMS = 256
MAX_DEPTH = 4
MAX_PARTS = 4096  # of one value

_PLAIN = (int, float, complex, bool, str, bytes, type(None))


class Unkeepable(Exception):
    """A value that cannot be handed out twice, such as a generator, or one that is too large."""


class _Edited(Exception):
    """The program has written into what it was given."""


class Shelf:
    """Kept values by key, handed out in turn. `copies`: every value handed out is a fresh copy.

    `whole`: what holds tensors and unchangeable things only is handed out itself, as the results of a cached function are.
    """

    def __init__(self, copies: bool = False, whole: bool = False, most_items: int = MAX_ITEMS, most_bytes: int = MAX_BYTES) -> None:
        self._values: dict = {}  # key -> list of kept values
        self._next: dict = {}
        self._most_items, self._most_bytes = most_items, most_bytes
        self.copies, self._whole = copies, whole
        self.items = self.bytes = 0
        self.refused = 0  # values that could not be kept

    def full(self) -> bool:
        """No more is kept."""
        return self.items >= self._most_items or self.bytes >= self._most_bytes

    def count(self, key: object) -> int:
        """How many values are kept under `key`."""
        return len(self._values.get(key, ()))

    def keep(self, keys: tuple, value: object) -> None:
        """Keep a copy of `value` under each key, if there is room and it can be copied."""
        if self.full():
            return
        try:
            size = _Size(self._most_bytes - self.bytes)
            copied = _copy(value, size, 0)
            if self._whole and not self.copies:
                copied = _Whole.of(copied)
        except Unkeepable:
            self.refused += 1
            return
        for key in keys:
            self._values.setdefault(key, []).append(copied)
        self.items += 1
        self.bytes += size.bytes

    def hand_out(self, key: object) -> object:
        """The next value under `key`, which must be there."""
        values = self._values[key]
        index = 0
        if len(values) > 1:
            index = self._next.get(key, os.getpid()) % len(values)
            self._next[key] = index + 1
        kept = values[index]
        try:
            return kept.value() if type(kept) is _Whole and not self.copies else _give(kept, self.copies)
        except _Edited:
            self.copies = True
            return _give(kept, True)

    def write(self, path: str) -> None:
        """Leave everything for another process; a value that cannot be pickled stays here only."""
        mine = f"{path}.{os.getpid()}"
        try:
            with open(mine, "wb") as out:
                pickle.dump([(key, [_plain(value) for value in values]) for key, values in self._values.items()], out, protocol=4)
            os.replace(mine, path)
        except Exception as error:
            swallow("kept write", error)
            if os.path.exists(mine):
                os.unlink(mine)

    def read(self, path: str) -> None:
        """Take what another process left."""
        with open(path, "rb") as saved:
            for key, values in pickle.load(saved):
                for value in values:
                    self.keep((key,), value)


class _Tensor:
    """A kept tensor and its version when it was last handed out unedited."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor) -> None:
        self.tensor = tensor
        self.version = tensor._version


class _Whole:
    """A value that can be handed out as it is while the program does not write into its tensors."""

    __slots__ = ("handed", "kept", "tensors")

    def __init__(self, kept: object, tensors: list) -> None:
        self.kept, self.tensors = kept, tensors
        self.handed = _unwrapped(kept)

    @classmethod
    def of(cls, kept: object) -> object:
        """`kept`, so wrapped if it can be."""
        tensors = []
        return cls(kept, tensors) if _unchangeable(kept, tensors) else kept

    def value(self) -> object:
        """The value itself; raises `_Edited`."""
        for each in self.tensors:
            if each.tensor._version != each.version:
                raise _Edited
        return self.handed


def _unchangeable(kept: object, tensors: list) -> bool:
    if type(kept) is _Tensor:
        tensors.append(kept)
        return True
    return type(kept) in _PLAIN or (type(kept) is tuple and all([_unchangeable(item, tensors) for item in kept]))


def _unwrapped(kept: object) -> object:
    if type(kept) is tuple:
        return tuple(_unwrapped(item) for item in kept)
    return kept.tensor if type(kept) is _Tensor else kept


class _Size:
    def __init__(self, most: int) -> None:
        self.most, self.bytes, self.parts = most, 0, 0

    def add(self, count: int) -> None:
        self.bytes += count
        self.parts += 1
        if self.bytes > self.most or self.parts > MAX_PARTS:
            raise Unkeepable


def _copy(value: object, size: _Size, depth: int) -> object:
    """A copy with each tensor inside a `_Tensor`."""
    kind = type(value)
    if kind in _PLAIN:
        size.add(len(value) if kind in (str, bytes) else 8)
        return value
    if depth > MAX_DEPTH:
        raise Unkeepable
    if hasattr(value, "detach") and hasattr(value, "_version"):
        size.add(value.numel() * value.element_size())
        return _Tensor(value.detach().clone())
    if kind.__module__ == "numpy" and hasattr(value, "nbytes"):
        size.add(int(value.nbytes))
        return value.copy()
    if kind is list or kind is tuple:
        if all(type(item) in _PLAIN for item in value):
            size.add(8 * len(value))
            return _Row(value) if kind is list else value
        return kind(_copy(item, size, depth + 1) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(_copy(item, size, depth + 1) for item in value))
    if isinstance(value, dict):
        copied = dict((key, _copy(item, size, depth + 1)) for key, item in value.items())
        return copied if kind is dict else _Mapping(kind, copied)
    if hasattr(value, "__next__") or callable(value) or hasattr(value, "read"):
        raise Unkeepable
    size.add(1024)
    return _Object(copy.copy(value))


class _Row:
    """A list of plain values."""

    __slots__ = ("items",)

    def __init__(self, items: list) -> None:
        self.items = list(items)


class _Mapping:
    """A dict of a class of its own, such as the batch encodings of tokenizers."""

    __slots__ = ("items", "kind")

    def __init__(self, kind: type, items: dict) -> None:
        self.kind, self.items = kind, items


class _Object:
    """Anything else, such as an image or a batch of a class of its own: what it holds is shared."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def _give(kept: object, copies: bool) -> object:
    kind = type(kept)
    if kind in _PLAIN:
        return kept
    if kind is _Whole:
        return _give(kept.kept, copies)
    if kind is _Tensor:
        if copies:
            return kept.tensor.clone()
        if kept.tensor._version != kept.version:
            raise _Edited
        return kept.tensor.detach()
    if kind is _Row:
        return kept.items[:]
    if kind is list or kind is tuple:
        return kind([_give(item, copies) for item in kept])
    if kind is dict:
        return {key: _give(item, copies) for key, item in kept.items()}
    if kind is _Mapping:
        return kept.kind({key: _give(item, copies) for key, item in kept.items.items()})
    if kind is _Object:
        return copy.copy(kept.value)
    if isinstance(kept, tuple):
        return kind(*(_give(item, copies) for item in kept))
    return kept.copy()  # an array of numpy


def _plain(kept: object) -> object:
    """What `_copy` was given, for a file."""
    return _give(kept, True)
