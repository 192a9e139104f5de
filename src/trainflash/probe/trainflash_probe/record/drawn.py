"""Which samples of a data set a loader drew, by their keys: the same sample is known again however its augmentation draws."""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
import weakref

from ..guard import swallow
from ..objects import is_a, is_tensor

_LIMIT = 4096  # keys of one batch that are kept
_NUMBERS = 12  # digits of a number that is its own key: far fewer than a digest has, so that it is told from one


class Drawn:
    """Wraps the loader's iterators. `batch()` is the keys of the batch that was fetched last, None where there are none."""

    def __init__(self, torch):
        self._current = None  # weak reference to the iterator that is asked for a batch
        self._waiting: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # iterator -> number of a batch -> its keys
        self._count = itertools.count()
        self._arrived: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # iterator -> number of the batch that a worker handed over
        module = torch.utils.data.dataloader
        base = module._BaseDataLoaderIter
        base._next_index = self._indexing(base._next_index)
        base.__next__ = self._fetching(base.__next__)
        workers = module._MultiProcessingDataLoaderIter
        workers._get_data = self._arriving(workers._get_data)

    def batch(self):
        """Keys of the newest batch, in order; hexadecimal, 8 bytes each."""
        iterator = self._current() if self._current is not None else None
        waiting = self._waiting.get(iterator) if iterator is not None else None
        if not waiting:
            return None
        as_ready = getattr(iterator, "_in_order", True) is False  # in_order=False, from torch 2.6 on
        return waiting.pop(self._arrived.get(iterator) if as_ready else next(iter(waiting)), None)

    def _indexing(self, original):
        @functools.wraps(original)
        def _next_index(iterator):
            index = original(iterator)
            try:
                waiting = self._waiting.setdefault(iterator, {})
                number = getattr(iterator, "_send_idx", None)  # None without workers, where each batch is fetched at once
                if number == 0:  # kept workers begin a pass, whatever was left of the one before
                    waiting.clear()
                waiting[("", next(self._count)) if number is None else number] = _keys(index)
            except Exception as error:
                swallow("drawn", error)
            return index

        return _next_index

    def _arriving(self, original):
        @functools.wraps(original)
        def _get_data(iterator):
            arrived = original(iterator)
            try:
                self._arrived[iterator] = arrived[0]
            except Exception as error:
                swallow("drawn", error)
            return arrived

        return _get_data

    def _fetching(self, original):
        @functools.wraps(original)
        def __next__(iterator):
            self._current = weakref.ref(iterator)
            return original(iterator)

        return __next__


def _keys(index):
    """Keys of what a sampler gives for one batch; None where one of them cannot be told without asking an object of the program's."""
    kind = next((kind for kind in (list, tuple) if is_a(index, kind)), None)
    if kind is not None and kind.__len__(index) > _LIMIT:
        return None
    words = [_word(key) for key in ([index] if kind is None else kind.__iter__(index))]
    return None if None in words else [_key(word) for word in words]


def _key(word):
    """16 hexadecimal digits: a number as it is, a digest of anything else."""
    if word.isdigit() and len(word) <= _NUMBERS:
        return f"{int(word):016x}"
    return hashlib.blake2b(word.encode(), digest_size=8).hexdigest()


def _word(key):
    """What a key says: numbers, texts, tuples of them, and numbers of NumPy's and torch's; None for anything else."""
    if type(key) in (int, str, bool, float, bytes):
        return repr(key)
    if type(key) in (tuple, list):
        words = [_word(each) for each in key]
        return None if None in words else f"({', '.join(words)})"
    if is_tensor(key):
        return repr(key.tolist()) if key.device.type == "cpu" and key.numel() <= _LIMIT else None
    if is_a(key, sys.modules["numpy"].generic) if "numpy" in sys.modules else False:
        return repr(key.item())
    return None
