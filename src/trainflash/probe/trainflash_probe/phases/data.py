"""Hooks on DataLoader in the training process: construction, iter(), each wait for a batch."""

from __future__ import annotations

import functools
import sys
import time
import weakref
from threading import get_ident
from types import FunctionType

from .. import codes, own
from ..built import classes_of
from ..environment import diagnose
from ..guard import swallow
from ..lengths import length_of
from ..objects import attribute, of_class, place_of_own
from ..patches import like
from ..wrapped import innermost
from ..writer import emit, fact
from . import collators
from .loop import loop

_serials = 0
_built: dict = {}  # id of a dataset -> (weak reference of the loader that the owner's own line built over it, that line)
_known: dict = {}  # what makes two loaders the same one, built again -> id
_numbers: dict = {}  # id of a loader -> (weak reference of it, its number); nothing is written into the loader, which may be saved


def install(torch) -> None:
    """Wrap DataLoader and its iterators."""
    module = sys.modules["torch.utils.data.dataloader"]
    loader = module.DataLoader
    loader.__init__ = _constructed(loader.__init__)
    loader.__iter__ = _iter(loader.__iter__)
    base = module._BaseDataLoaderIter
    base.__next__ = _next(base.__next__)
    collators.install()


def _constructed(original):
    @like(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            _note_loader(self)
        except Exception as error:
            swallow("DataLoader", error)

    return __init__


def _note_loader(loader) -> None:
    """Number the loader; one that is built again at the same line over the same dataset keeps its number."""
    place = _place_of(loader)
    arguments = _arguments(loader)
    key = (tuple(place or ()), id(loader.dataset), arguments["num_workers"], arguments["batch_size"], arguments["shuffles"])
    number = _known.get(key)
    if number is None:
        number = _known[key] = min(len(_known), codes.MAX_LOADER)
        if diagnose and len(_known) <= codes.MAX_LOADER:
            parts = (loader.dataset, loader.collate_fn, loader.sampler, loader.batch_sampler)
            fact("loader", id=number, at=place, classes=classes_of(*parts), **arguments)
    _numbers[id(loader)] = weakref.ref(loader, functools.partial(_forget, id(loader))), number


def _forget(key: int, reference) -> None:
    if _numbers.get(key, (None,))[0] is reference:
        del _numbers[key]


def _number_of(loader) -> int:
    reference, number = _numbers.get(id(loader)) or (None, -1)
    return number if reference is not None and reference() is loader else -1


def _place_of(loader):
    """The owner's line; where a library builds a loader over the dataset of one that the owner built, the line of that one."""
    place, dataset = own.caller(), id(loader.dataset)
    built = _built.get(dataset)
    first = built[0]() if built is not None else None
    if own.is_own(sys._getframe(3).f_code):
        _built[dataset] = weakref.ref(loader), place
    elif first is not None and first.dataset is loader.dataset:
        return built[1]
    return place


def _arguments(loader) -> dict:
    dataset = loader.dataset
    iterable = type(loader.sampler).__name__ == "_InfiniteConstantSampler"
    source = dataset if iterable else innermost(dataset)
    method = of_class(type(source), "__iter__" if iterable else "__getitem__")
    batches = attribute(loader.batch_sampler, "batch_size") if loader.batch_size is None else loader.batch_size
    collate = loader.collate_fn
    return {
        "num_workers": loader.num_workers,
        "batch_size": batches if type(batches) is int else None,
        "persistent_workers": bool(loader.persistent_workers),
        "pin_memory": bool(loader.pin_memory),
        "prefetch_factor": loader.prefetch_factor,
        "drop_last": bool(loader.drop_last),
        "shuffles": "Random" in type(loader.sampler).__name__ or attribute(loader.sampler, "shuffle") is True,
        "own_generator": _own_generator(loader),
        "iterable": iterable,
        "dataset": type(source).__name__,
        "dataset_at": own.place_of_function(method),
        "dataset_len": None if iterable else length_of(dataset),
        "collate": collate.__qualname__ if type(collate) is FunctionType else type(collate).__name__,
        "collate_at": place_of_own(collate),
        "collator_at": collators.made_at(collate),
    }


def _own_generator(loader) -> bool:
    """Whether the order comes from a generator that nothing else draws from. The loader's own also gives each new set of workers a seed."""
    inner = attribute(loader.batch_sampler, "sampler")
    sampler = loader.sampler if inner is None else inner
    generator = attribute(sampler, "generator")
    if generator is not None:
        return generator is not loader.generator
    # DistributedSampler, and what is like it, makes its own anew in each epoch.
    return type(attribute(sampler, "seed")) is int and attribute(sampler, "epoch") is not None


def _iter(original):
    @like(original)
    def __iter__(self):
        if loop.in_data:
            return original(self)
        number = _number_of(self)
        if loop.tid != get_ident():  # maybe the thread that will turn out to train
            return _numbered(original(self), number)
        try:
            loop.fetch_begins(0, number)
        except Exception as error:
            swallow("iter", error)
        began = time.monotonic_ns()
        loop.begin(codes.ITER_OF + max(0, number))
        loop.in_data = True
        try:
            iterator = original(self)
        finally:
            loop.in_data = False
            emit(codes.DATA_END)
            if loop.gap is not None:
                loop.gap.resume()
        return _numbered(iterator, number, time.monotonic_ns() - began)

    return __iter__


def _numbered(iterator, number: int, ns=None):
    global _serials
    try:
        _serials += 1
        iterator._trainflash = (_serials, max(0, number))
        if diagnose:
            workers = [worker.pid for worker in getattr(iterator, "_workers", ())]
            fact("iter", loader=number, ns=ns, workers=workers)
    except Exception as error:
        swallow("iter", error)
    return iterator


def _next(original):
    @like(original)
    def __next__(self):
        if loop.tid != get_ident() or loop.in_data:
            return original(self)
        try:
            serial, number = self._trainflash
        except AttributeError:
            serial = number = 0
        if loop.pending and loop.passes(256 + number):  # codes.DATA_OF, as a constant for speed
            loop.clock.fetched = True
        elif loop.pending or loop.evaluating or loop.gap is not None or not loop.started:
            try:
                loop.fetch_begins(serial, number)
            except Exception as error:
                swallow("fetch", error)
            loop.begin(codes.DATA_OF + number)
        else:
            emit(256 + number)
        loop.in_data = True
        try:
            batch = original(self)
            if serial == loop.train_serial and not loop.on_batch:
                loop.last_serial, loop.fresh_train_batch = serial, True
            else:
                try:
                    loop.fetch_ended(serial, number, batch)
                except Exception as error:
                    swallow("fetch", error)
            return batch
        finally:
            loop.in_data = False
            emit(17)  # codes.DATA_END
            if loop.gap is not None:
                loop.gap.resume()

    return __next__
