"""Hooks where batches are made: DataLoader workers, and the fetchers in whatever process runs them."""

from __future__ import annotations

import functools
import sys
import time
from threading import get_ident

from . import codes, process
from .calls import Window
from .environment import diagnose
from .guard import swallow
from .loop import loop
from .writer import emit, emit_value

TRACED_INDICES = 16  # of a dataset, the same ones in every process and epoch
TRACED_FETCHES = (2, 3, 10)  # of a dataset without indices
MAX_WINDOWS = 64
MAX_COLLATE_WINDOWS = 2 * TRACED_INDICES  # two passes, each batch with a chosen index

_windows = 0
_collate_windows = 0
_to_collate: list = []  # the chosen samples in the batch that is being fetched, and its size
_fetch_number = 0


def install(torch) -> None:
    """Wrap the worker loop, and for a diagnosis the fetchers."""
    worker = sys.modules["torch.utils.data._utils.worker"]
    worker._worker_loop = _worker_loop(worker._worker_loop)
    if diagnose:
        fetch = sys.modules["torch.utils.data._utils.fetch"]
        fetch._MapDatasetFetcher.fetch = _fetch(fetch._MapDatasetFetcher.fetch, _traced_map)
        fetch._IterableDatasetFetcher.fetch = _fetch(fetch._IterableDatasetFetcher.fetch, _traced_whole)


def _worker_loop(original):
    @functools.wraps(original)
    def _worker_loop(*args, **kwargs):
        try:
            process.role = "worker"
            loop.tid = None  # no phases here
            if diagnose:
                from . import lines

                lines.start(get_ident())
        except Exception as error:
            swallow("worker", error)
        try:
            return original(*args, **kwargs)
        finally:
            _report_swallowed()

    return _worker_loop


def _report_swallowed() -> None:
    from .guard import counts
    from .writer import fact

    if counts():
        fact("swallowed", places=counts())


def _fetch(original, traced):
    @functools.wraps(original)
    def fetch(self, possibly_batched_index):
        global _fetch_number
        if process.role != "worker" and loop.tid != get_ident():
            return original(self, possibly_batched_index)
        if not getattr(self.collate_fn, "_trainflash", False):
            self.collate_fn = _collate(self.collate_fn)
        _fetch_number += 1
        emit(codes.FETCH)
        cpu = time.thread_time_ns()
        try:
            return traced(original, self, possibly_batched_index)
        finally:
            emit(codes.FETCHED)
            emit_value(time.thread_time_ns() - cpu)

    return fetch


def _collate(original):
    def collate(batch):
        emit(codes.COLLATE)
        return _traced_collate(original, batch) if _to_collate else original(batch)

    collate._trainflash = True
    return collate


def _traced_collate(original, batch):
    global _collate_windows
    chosen, size = _to_collate
    del _to_collate[:]
    window = Window("collate", chosen=chosen, batch=size)
    if getattr(original, "__module__", "").partition(".")[0] == "torch" or not window.begin():
        return original(batch)
    _collate_windows += 1
    try:
        return original(batch)
    finally:
        window.end()


class _TracedDataset:
    """Stands in for a dataset during one fetch: chosen indices are fetched in a traced window."""

    def __init__(self, dataset, chosen: frozenset) -> None:
        self._dataset, self._chosen = dataset, chosen

    def __getitem__(self, index):
        global _windows
        if not isinstance(index, int) or index not in self._chosen or _windows >= MAX_WINDOWS:
            return self._dataset[index]
        window = Window("fetch")
        if not window.begin():
            return self._dataset[index]
        _windows += 1
        try:
            return self._dataset[index]
        finally:
            window.end()


def _traced_map(original, fetcher, indices):
    dataset = fetcher.dataset
    del _to_collate[:]
    if _windows >= MAX_WINDOWS or not isinstance(indices, list):
        return original(fetcher, indices)
    if getattr(dataset, "__getitems__", None):
        return _traced_whole(original, fetcher, indices)
    chosen = _chosen(dataset, indices)
    if not chosen:
        return original(fetcher, indices)
    if _collate_windows < MAX_COLLATE_WINDOWS:
        _to_collate[:] = [[f"{len(dataset)}:{index}" for index in sorted(chosen)], len(indices)]
    fetcher.dataset = _TracedDataset(dataset, chosen)
    try:
        return original(fetcher, indices)
    finally:
        fetcher.dataset = dataset


def _chosen(dataset, indices: list) -> frozenset:
    try:
        stride = max(1, len(dataset) // TRACED_INDICES)
        return frozenset(index for index in indices if isinstance(index, int) and index % stride == 0)
    except Exception:
        return frozenset()


def _traced_whole(original, fetcher, indices):
    global _windows
    window = Window("fetch")
    if _fetch_number not in TRACED_FETCHES or not window.begin():
        return original(fetcher, indices)
    _windows += 1
    try:
        return original(fetcher, indices)
    finally:
        window.end()
