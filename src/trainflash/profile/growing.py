"""Columns that grow block by block and are joined once, without ever holding much more than they contain.

Blocks are a few 10 kB. Kept one by one they would lie scattered over the allocator's heap, between what was freed since: reading 1 GB of
text took 0.54 of it that way, and 0.36 now. Here they are copied into slabs that the operating system gives and takes back one by one.
"""

from __future__ import annotations

import mmap

import numpy as np

SLAB_BYTES = 4 << 20


class Growing:
    """One column. Its slabs have the type of what was appended; `joined` says which type the whole has."""

    def __init__(self) -> None:
        self._slabs: list[np.ndarray] = []
        self._used = 0  # rows of the last slab
        self._rows = 0

    def append(self, values: np.ndarray) -> None:
        values = np.asarray(values)
        self._rows += len(values)
        while len(values):
            if not self._slabs or self._used == len(self._slabs[-1]) or not np.can_cast(values.dtype, self._slabs[-1].dtype):
                self._close()
                self._slabs.append(np.frombuffer(mmap.mmap(-1, SLAB_BYTES), values.dtype, SLAB_BYTES // values.dtype.itemsize))
                self._used = 0
            count = min(len(values), len(self._slabs[-1]) - self._used)
            self._slabs[-1][self._used : self._used + count] = values[:count]
            self._used += count
            values = values[count:]

    def __len__(self) -> int:
        return self._rows

    def joined(self, dtype: type | None = None) -> np.ndarray:
        """All rows in the order of `append`, as `dtype` or the narrowest type that holds all. The column is empty afterwards."""
        self._close()
        slabs, self._slabs, self._used = self._slabs[::-1], [], 0
        kind = np.dtype(dtype) if dtype is not None else np.result_type(*slabs) if slabs else np.dtype(np.int64)
        whole = np.empty(self._rows, kind)
        at, self._rows = 0, 0
        while slabs:
            slab = slabs.pop()
            whole[at : at + len(slab)] = slab
            at += len(slab)
        return whole

    def _close(self) -> None:
        """The last slab ends where it was filled to."""
        if self._slabs:
            self._slabs[-1] = self._slabs[-1][: self._used]


class GrowingRows:
    """Ascending row numbers. Runs, as most blocks are, take no room."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, bool]] = []  # first row and the one behind the last, or how many of `_few`
        self._few = Growing()

    def append(self, first: int, count: int, rows: np.ndarray | None) -> None:
        """The rows `first + rows`, or all of `first`, …, `first + count - 1`."""
        if rows is not None:
            self._few.append((rows + first).astype(np.int32))
            self._parts.append((0, len(rows), False))
        elif self._parts and self._parts[-1][2] and self._parts[-1][1] == first:
            self._parts[-1] = (self._parts[-1][0], first + count, True)
        else:
            self._parts.append((first, first + count, True))

    def joined(self) -> np.ndarray:
        """All of them, int32. The column is empty afterwards."""
        few, parts, self._parts = self._few.joined(np.int32), self._parts, []
        whole = np.empty(sum(last - first for first, last, _ in parts), np.int32)
        at = taken = 0
        for first, last, run in parts:
            count = last - first
            whole[at : at + count] = np.arange(first, last) if run else few[taken : taken + count]
            at += count
            taken += 0 if run else count
        return whole
