"""Hooks where batches are made: DataLoader workers, and the fetchers in whatever process runs them."""

from __future__ import annotations

import functools
import sys
import time
from threading import get_ident
from time import monotonic_ns
from types import FunctionType

from .. import codes, process
from ..environment import diagnose
from ..facts import closer, samples, worker_memory
from ..facts.calls import Window
from ..guard import counts, swallow
from ..lengths import length_of
from ..objects import attributes_of, is_a, of_class
from ..runqueue import waited_ns
from ..wrapped import is_torchs
from ..writer import emit, emit_value, fact
from .loop import loop
from .observer import Observer

TRACED_INDICES = 16  # of a dataset, the same ones in every process and epoch
TRACED_FETCHES = (2, 3, 10)  # of a dataset without indices; of one with indices the first sample of these, too
# Close looks on the training thread, of which one asks the kernel for CPU time and waiting. Asking for a thread's CPU time is where a busy
# kernel takes the core away: asked in each fetch, all of the program's waiting fell into its fetches (67 % of the time instead of 9 %).
ASK_EVERY = 4
MAX_WINDOWS = 64
MAX_WINDOWS_OF_ONE = 3  # of one index in one process; later it is timed like the others
MAX_COLLATE_WINDOWS = 2 * TRACED_INDICES  # two passes, each batch with a chosen index

_windows = 0
_collate_windows = 0
_to_collate: list = []  # the chosen samples in the batch that is being fetched, its size, and its loader
_traced: dict = {}  # (loader, index) -> windows so far
_regular: dict = {}  # loader -> length of its dataset, and those indices at regular distances that wait for windows


def install(torch) -> None:
    """Wrap the worker loop, and for a diagnosis the fetchers."""
    worker = sys.modules["torch.utils.data._utils.worker"]
    worker._worker_loop = _worker_loop(worker._worker_loop)
    if diagnose:
        fetch = sys.modules["torch.utils.data._utils.fetch"]
        fetch._MapDatasetFetcher.fetch = _fetch(fetch._MapDatasetFetcher.fetch, _fetch_map)
        fetch._IterableDatasetFetcher.fetch = _fetch(fetch._IterableDatasetFetcher.fetch, _fetch_whole)
        loop.add(_AtExit())


class _AtExit(Observer):
    def on_exit(self) -> None:
        samples.write_all()


def _worker_loop(original):
    @functools.wraps(original)
    def _worker_loop(*args, **kwargs):
        try:
            process.role = "worker"
            loop.tid = None  # no phases here
            if diagnose:
                from ..facts import lines

                samples.after_fork()
                lines.start(get_ident(), within="_worker_loop")
        except Exception as error:
            swallow("worker", error)
        try:
            return original(*args, **kwargs)
        finally:
            _report()

    return _worker_loop


def _report() -> None:
    try:
        if diagnose:
            from ..facts import lines

            lines.stop()  # what follows is the end of the process, no work on batches
        samples.write_all()
    except Exception as error:
        swallow("samples", error)
    if counts():
        fact("swallowed", places=counts())


def _fetch(original, run):
    @functools.wraps(original)
    def fetch(self, possibly_batched_index):
        if process.role != "worker" and loop.tid != get_ident():
            return original(self, possibly_batched_index)
        record = self.__dict__.get("_trainflash_record") or _adopt(self)
        number = record.fetches = record.fetches + 1
        if number & 15 == 1 and process.role == "worker":
            worker_memory.look(number)
        if closer.wanted and process.role == "worker":
            return _traced_by_lines(original, self, possibly_batched_index)
        if number <= record.close_until or record.usual >= samples.LONG_SAMPLE_NS or not number % samples.CLOSE_EVERY:
            return _closely(original, run, self, possibly_batched_index, record)
        began = monotonic_ns()
        emit(4)  # codes.FETCH, as a constant for speed
        try:
            if record.chooses and _regular_in(possibly_batched_index, self.dataset, record.loader):
                return _fetch_map(original, self, possibly_batched_index, None)
            return original(self, possibly_batched_index)
        finally:
            emit(6)
            if monotonic_ns() - began >= samples.LONG_FETCH_NS:
                record.seems_long()

    return fetch


def _adopt(fetcher):
    if "_trainflash" not in attributes_of(fetcher.collate_fn):
        fetcher.collate_fn = _collate(fetcher.collate_fn)
    record = fetcher.__dict__["_trainflash_record"] = samples.record_of(fetcher)
    return record


def _closely(original, run, fetcher, indices, record):
    """A fetch that is timed sample by sample; some of them with its CPU time and its wait for a core."""
    states = record.draws.before(attributes_of(fetcher).get("dataset"))
    waited, began = waited_ns(), monotonic_ns()
    asks = process.role == "worker" or not record.fetches % ASK_EVERY
    emit(codes.FETCH)
    cpu = time.thread_time_ns() if asks else 0
    try:
        return run(original, fetcher, indices, waited)
    finally:
        emit(codes.FETCHED)
        now = None
        if asks:
            emit_value(time.thread_time_ns() - cpu)
            now = waited_ns()
            if waited is not None and now is not None:
                emit_value(now - waited)
        took = monotonic_ns() - began
        if took >= samples.LONG_FETCH_NS:
            now = waited_ns() if now is None else now
            without_core = 0 if waited is None or now is None else now - waited
            if took - without_core >= samples.LONG_FETCH_NS:
                record.was_long()
        record.draws.after(states)


def _traced_by_lines(original, fetcher, indices):
    """One batch of a worker whose late samples have to be explained; its times are not written."""
    closer.begin()
    try:
        return original(fetcher, indices)
    finally:
        closer.end()


def _collate(original):
    def collate(batch):
        emit(codes.COLLATE)
        return _traced_collate(original, batch) if _to_collate else original(batch)

    collate._trainflash = True
    return collate


def _traced_collate(original, batch):
    global _collate_windows
    chosen, size, loader = _to_collate
    del _to_collate[:]
    window = Window("collate", chosen=chosen, batch=size, loader=loader)
    if _of_torch(original) or not window.begin():
        return original(batch)
    _collate_windows += 1
    try:
        return original(batch)
    finally:
        window.end()


def _of_torch(function) -> bool:
    module = function.__module__ if type(function) is FunctionType else of_class(type(function), "__module__")
    return type(module) is str and module.partition(".")[0] == "torch"


class _TracedDataset:
    """Stands in for a dataset during one fetch: chosen indices are fetched in a traced window, the others are timed."""

    def __init__(self, dataset, timed: samples.TimedDataset, chosen: frozenset, loader: int) -> None:
        self._dataset, self._timed, self._chosen, self._loader = dataset, timed, chosen, loader

    def __getitem__(self, index):
        global _windows
        if type(index) is not int or index not in self._chosen or _windows >= MAX_WINDOWS:
            return self._timed[index]
        window = Window("fetch", chosen=[f"{length_of(self._dataset)}:{index}"], loader=self._loader)
        if not window.begin():
            return self._timed[index]
        _windows += 1
        _was_traced(self._loader, index)
        try:
            return self._dataset[index]
        finally:
            window.end()


def _fetch_map(original, fetcher, indices, waited):
    dataset = fetcher.dataset
    del _to_collate[:]
    record = samples.record_of(fetcher)
    if type(indices) is int:  # no automatic batches: the sampler names single samples
        return _fetch_one(original, fetcher, indices, waited, record)
    if not is_a(indices, list):
        return original(fetcher, indices)
    if not _makes_samples(dataset) or not fetcher.auto_collation:
        samples.note_batched(record)
        return _fetch_whole(original, fetcher, indices, waited)
    record.chooses = _windows < MAX_WINDOWS and bool(_regular.get(record.loader, (0, True))[1])
    timed = fetcher.dataset = samples.TimedDataset(dataset, record.usual, waited)
    chosen = _chosen(dataset, indices, record.loader, record.fetches)
    if chosen:
        if _collate_windows < MAX_COLLATE_WINDOWS:
            length = length_of(dataset)
            _to_collate[:] = [[f"{length}:{index}" for index in sorted(chosen)], list.__len__(indices), record.loader]
        fetcher.dataset = _TracedDataset(dataset, timed, chosen, record.loader)
    try:
        return original(fetcher, indices)
    finally:
        fetcher.dataset = dataset
        record.add(timed.times, timed.slow, dataset)


def _fetch_one(original, fetcher, index: int, waited, record):
    dataset = fetcher.dataset
    timed = fetcher.dataset = samples.TimedDataset(dataset, record.usual, waited)
    try:
        return original(fetcher, index)
    finally:
        fetcher.dataset = dataset
        record.add(timed.times, timed.slow, dataset)


def _chosen(dataset, indices: list, loader: int, number: int) -> frozenset:
    """Which samples of this batch to trace: those at regular distances, and the first one of a few early batches."""
    if _windows >= MAX_WINDOWS:
        return frozenset()
    chosen = _regular_in(indices, dataset, loader)
    if number in TRACED_FETCHES and list.__len__(indices):
        chosen.update(index for index in list.__getitem__(indices, slice(1)) if type(index) is int)
    return frozenset(chosen)


def _makes_samples(dataset: object) -> bool:
    """Whether torch will ask it for one sample after the other. Who answers for names of his own (`__getattr__`) is not asked twice.

    A `Subset` of torch's asks what it stands around for all samples of a batch at once where that can do so, and else one by one.
    """
    while is_torchs(dataset, "Subset"):
        dataset = attributes_of(dataset)["dataset"]
    asked = of_class(type(dataset), "__getitems__"), of_class(type(dataset), "__getattr__"), attributes_of(dataset).get("__getitems__")
    return asked == (None, None, None)


def _regular_in(indices: object, dataset: object, loader: int) -> set:
    """Those of `indices` that lie at regular distances in the dataset and wait for windows."""
    if not is_a(indices, list):
        return set()
    before, waiting = _regular.get(loader, (None, None))
    found = _among(indices, waiting) if waiting is not None else None
    if found is not None and not found:
        return found
    length = length_of(dataset)  # asked only where it matters: that takes as long as all else here
    if length is None or length == before:
        return found or set()
    regular = range(0, length, max(1, length // TRACED_INDICES))
    waiting = {index for index in regular if _traced.get((loader, index), 0) < MAX_WINDOWS_OF_ONE}
    _regular[loader] = length, waiting
    return _among(indices, waiting)


def _among(indices: list, wanted: set) -> set:
    return {index for index in list.__iter__(indices) if type(index) is int and index in wanted}


def _was_traced(loader: int, index: int) -> None:
    windows = _traced[(loader, index)] = _traced.get((loader, index), 0) + 1
    if windows >= MAX_WINDOWS_OF_ONE and loader in _regular:
        _regular[loader][1].discard(index)


def _fetch_whole(original, fetcher, indices, waited):
    global _windows
    record = samples.record_of(fetcher)
    window = Window("fetch", loader=record.loader)
    if record.fetches not in TRACED_FETCHES or not window.begin():
        return original(fetcher, indices)
    _windows += 1
    try:
        return original(fetcher, indices)
    finally:
        window.end()
