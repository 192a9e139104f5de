"""Where results are kept and replayed: samples and batches of a DataLoader, and functions of the owner.

Results are kept only in the first steps, so that live blocks cost what they always cost. What a worker process keeps it also leaves
in a file: workers that start later have no first steps.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import types

from .. import own, process
from ..environment import directory
from ..guard import swallow
from ..lengths import length_of
from ..phases.brackets import exchange, is_passage
from ..phases.loop import loop
from .kept import Shelf
from .mode import COLLECT, LIVE, REPLAY, mode

MAX_LOOKS = 6  # a function is searched for at so many boundaries
MAX_RESULTS = 4096  # of a function
_GENERATOR = 0x20 | 0x80 | 0x200


def install(torch, spec: dict) -> Places:
    """Hook what `spec` names."""
    kind = spec["replay"]
    fetch = sys.modules["torch.utils.data._utils.fetch"]
    places = Places(spec)
    if kind == "batches":
        loader = sys.modules["torch.utils.data.dataloader"]
        for iterator in (loader._SingleProcessDataLoaderIter, loader._MultiProcessingDataLoaderIter):
            iterator._next_data = _next_data(iterator._next_data, places)
    elif kind in ("samples", "collated", "function"):
        for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            fetcher.fetch = _fetch(fetcher.fetch, kind, places)
    else:
        raise ValueError(f"no replay {kind}")
    return places


class Places:
    """The shelf of this process, and how it travels to workers that start later."""

    def __init__(self, spec: dict) -> None:
        kind = spec["replay"]
        self._at = spec.get("at") if kind == "function" else None
        self._each = int(spec.get("value") or 1)
        self._looks = 0
        self._found = self._at is None
        self._file = os.path.join(directory, "replay-kept.pickle")
        self._written = 0
        self._read = False
        # Making a batch writes fresh memory, and so does any fix of it; samples and results of a pure function need no copy.
        copies = kind == "collated" or self._each > 1
        limit = {"most_items": MAX_RESULTS} if self._at and not copies else {}
        self.shelf = Shelf(copies=copies, whole=kind in ("samples", "function"), **limit)

    def missing(self) -> str:
        """Why nothing can be replayed; "" when all is there. Called once, before the blocks."""
        if not self.shelf.items and os.path.exists(self._file):
            self._take()
        if not self._found:
            return f"{self._at[2]} was not found"
        if not self.shelf.items:
            return "its results cannot be kept" if self.shelf.refused else "it was not called in the first steps"
        return ""

    def keep(self, keys: tuple, value: object) -> None:
        """Keep a result, except in live blocks; in a worker also for those that start later."""
        now = mode()
        if now == LIVE:
            return
        try:
            self.shelf.keep(keys, value)
            if process.role == "worker" and now == COLLECT and self.shelf.items >= max(1, 2 * self._written):
                self._written = self.shelf.items
                self.shelf.write(self._file)
        except Exception as error:
            swallow("replay keep", error)

    def ready(self, key: object) -> bool:
        """Whether results are replayed now and there is one to hand out; a worker that started late looks into the file."""
        if mode() != REPLAY:
            return False
        if process.role == "worker" and not self._read and not self.shelf.items:
            self._take()
        return bool(self.shelf.count(key))

    def _take(self) -> None:
        self._read = True
        try:
            self.shelf.read(self._file)
        except Exception as error:
            swallow("kept read", error)

    def instead(self, key: object, make):
        """A kept result, else what `make` makes."""
        if self.ready(key):
            try:
                return self.shelf.hand_out(key)
            except Exception as error:
                swallow("replay", error)
        value = make()
        self.keep((key,), value)
        return value

    def look(self) -> None:
        """Search for the function, wherever it is defined by now."""
        if self._found or self._looks >= MAX_LOOKS:
            return
        self._looks += 1
        for function in _functions_at(self._at):
            self._found = True
            exchange(function, self._remembered)

    def _remembered(self, original):
        hand_out = self.shelf.hand_out

        def call(*args, **kwargs):
            now = mode()
            if now == LIVE:
                return original(*args, **kwargs)
            if now == REPLAY and not kwargs:  # as cheap as the cache that a fix would be
                try:
                    return hand_out(args)
                except Exception:  # not kept, or no key
                    pass
            key, sort = _keys(args, kwargs)
            for known in (key, sort):
                if known is not None and self.ready(known):
                    return self.instead(known, lambda: original(*args, **kwargs))
            value = original(*args, **kwargs)
            if value is not None and (key is None or self.shelf.count(key) < self._each):
                self.keep((sort,) if key is None else (key, sort), value)
            return value

        return call


def _functions_at(at: list) -> list:
    """Functions whose code begins at this place; never generators, whose results cannot be handed out twice."""
    file, line, name = at
    found = []
    for item in gc.get_objects():
        if type(item) is not types.FunctionType:
            continue
        code = item.__code__
        if is_passage(code):
            continue
        if code.co_firstlineno == line and code.co_name == name.rpartition(".")[2] and not code.co_flags & _GENERATOR:
            path = own.path_of(code)
            if path == file or (not os.path.isabs(file) and path.endswith(os.sep + file)):
                found.append(item)
    return found


def _keys(args: tuple, kwargs: dict) -> tuple:
    """(arguments as a key, None where they cannot be compared cheaply; their sort, for results of other arguments like them)."""
    values = (*args, *kwargs.values()) if kwargs else args
    sort = ("sort", *map(_sort, values))
    for value in values:
        if hasattr(value, "shape"):
            return None, sort
    key = (args, *kwargs.items()) if kwargs else args
    try:
        hash(key)
    except Exception:
        return None, sort
    return key, sort


def _sort(value: object) -> tuple:
    shape = getattr(value, "shape", None)
    return (type(value).__name__, str(shape)) if shape is not None else (type(value).__name__,)


def _dataset_key(dataset) -> tuple:
    return (type(dataset).__qualname__, length_of(dataset))


def _fetch(original, kind: str, places: Places):
    @functools.wraps(original)
    def fetch(self, possibly_batched_index):
        dataset = self.dataset
        try:
            _prepare(self, kind, places)
        except Exception as error:
            swallow("replay fetch", error)
        try:
            return original(self, possibly_batched_index)
        finally:
            self.dataset = dataset

    return fetch


def _prepare(fetcher, kind: str, places: Places) -> None:
    """Put our stand-ins where a fetch finds the dataset and collate_fn; that for the dataset is there for one fetch only."""
    key = _dataset_key(fetcher.dataset)
    if kind == "function":
        places.look()
    elif kind == "collated":
        if not isinstance(fetcher.collate_fn, _Collate):
            fetcher.collate_fn = _Collate(fetcher.collate_fn, key, places)
    elif hasattr(fetcher, "dataset_iter"):
        if not isinstance(fetcher.dataset_iter, _Items):
            fetcher.dataset_iter = _Items(fetcher.dataset_iter, key, places)
    elif mode() != LIVE:
        plain = fetcher.auto_collation and not getattr(fetcher.dataset, "__getitems__", None)
        fetcher.dataset = _Replayed(key, places) if plain and places.ready(key) else _Samples(fetcher.dataset, key, places)


class _Replayed:
    """Stands in for a dataset of which samples are kept; costs hardly more than an index."""

    def __init__(self, key: tuple, places: Places) -> None:
        self._key, self._hand_out = key, places.shelf.hand_out

    def __getitem__(self, index):
        return self._hand_out(self._key)


class _Samples:
    """Stands in for a dataset during one fetch."""

    def __init__(self, dataset, key: tuple, places: Places) -> None:
        self._dataset, self._key, self._places = dataset, key, places
        self.__getitems__ = self._several if getattr(dataset, "__getitems__", None) else None

    def __getitem__(self, index):
        key = (*self._key, len(index)) if isinstance(index, list) else self._key
        return self._places.instead(key, lambda: self._dataset[index])

    def _several(self, indices: list):
        whole = (*self._key, len(indices))
        if self._places.ready(self._key):
            return [self._places.instead(self._key, lambda index=index: self._dataset[index]) for index in indices]
        if self._places.ready(whole):
            return self._places.instead(whole, lambda: self._dataset.__getitems__(indices))
        values = self._dataset.__getitems__(indices)
        one_by_one = isinstance(values, list) and len(values) == len(indices)
        for value in values if one_by_one else ():
            self._places.keep((self._key,), value)
        if not one_by_one:
            self._places.keep((whole,), values)
        return values


class _Items:
    """Stands in for the iterator of a dataset without indices; replayed items do not advance it."""

    def __init__(self, items, key: tuple, places: Places) -> None:
        self._items, self._key, self._places = items, key, places
        self._hand_out = places.shelf.hand_out

    def __iter__(self):
        return self

    def __next__(self):
        if mode() == LIVE:
            return next(self._items)
        return self._hand_out(self._key) if self._places.ready(self._key) else self._kept()

    def _kept(self):
        value = next(self._items)
        self._places.keep((self._key,), value)
        return value


class _Collate:
    """Stands in for `collate_fn`."""

    def __init__(self, original, key: tuple, places: Places) -> None:
        self._original, self._key, self._places = original, key, places

    def __call__(self, batch):
        key = (*self._key, len(batch) if hasattr(batch, "__len__") else 0)
        return self._places.instead(key, lambda: self._original(batch))


def _next_data(original, places: Places):
    """Whole batches: workers idle, and the pass over the data ends when it would."""

    @functools.wraps(original)
    def next_data(self):
        if loop.evaluating or loop.eval_depth:
            return original(self)
        if self._num_yielded == 0:
            self._trainflash_replayed = False
        key = _dataset_key(self._dataset)
        again = places.ready(key)
        if again:
            self._trainflash_replayed = True
        if self._trainflash_replayed and _is_over(self):
            if hasattr(self, "_shutdown_workers") and not self._persistent_workers:
                self._shutdown_workers()
            raise StopIteration
        return places.instead(key, lambda: original(self))

    return next_data


def _is_over(iterator) -> bool:
    try:
        return iterator._num_yielded >= len(iterator._index_sampler)
    except TypeError:
        return False
