"""Which samples of a data set a loader drew, by their keys: the same sample is known again however its augmentation draws."""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections import deque

_LIMIT = 4096  # keys of one batch that are kept


class Drawn:
    """Wraps the loader's iterators. `batch()` is the keys of the batch that was fetched last, None where there are none."""

    def __init__(self, torch):
        self._current = None  # weak reference to the iterator that is asked for a batch
        self._waiting: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        module = torch.utils.data.dataloader
        base = module._BaseDataLoaderIter
        base._next_index = self._indexing(base._next_index)
        base.__next__ = self._fetching(base.__next__)

    def batch(self):
        """Keys of the newest batch, in order; hexadecimal, 8 bytes each."""
        iterator = self._current() if self._current is not None else None
        waiting = self._waiting.get(iterator) if iterator is not None else None
        return waiting.popleft() if waiting else None

    def _indexing(self, original):
        @functools.wraps(original)
        def _next_index(iterator):
            index = original(iterator)
            keys = index if isinstance(index, (list, tuple)) else [index]
            self._waiting.setdefault(iterator, deque()).append(
                [_key(key) for key in keys] if len(keys) <= _LIMIT and not any(key is None for key in keys) else None
            )
            return index

        return _next_index

    def _fetching(self, original):
        @functools.wraps(original)
        def __next__(iterator):
            self._current = weakref.ref(iterator)
            return original(iterator)

        return __next__


def _key(key):
    return hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
