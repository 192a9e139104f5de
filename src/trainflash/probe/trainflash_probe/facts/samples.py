"""How long single samples take to make, and which are the slowest: index, and file where the dataset names one.

A stand-in takes the dataset's place during one fetch and times each `dataset[index]`. Time in which the thread waited for a core is
taken off a slow sample, because a busy machine makes any sample slow.
"""

from __future__ import annotations

import sys
import time
from collections import deque

from ..runqueue import waited_ns
from ..writer import fact
from .draws import Draws
from .named_files import file_of

KEPT = 16  # slowest samples of one loader in one process
FIRST = 16  # samples before the first that can be called slow
SLOW = 3.0  # times the usual one; the reader asks for more
LEAST_NS = 200_000  # faster ones are never slow
EARLY_NS = 1_000_000  # before the usual time is known, slower ones are remembered
MEMORY = 1024  # newest times, for the usual one
CLOSE_UNTIL = 64  # fetches; of later ones that are short, one in CLOSE_EVERY is looked at closely
CLOSE_EVERY = 16
LONG_SAMPLE_NS = 20_000  # a close look costs some 10 µs a fetch and 0.3 µs a sample: one to two percent of samples and
LONG_FETCH_NS = 1_000_000  # fetches that take so long, which are all looked at
LOOK_ON = 256  # fetches after a long one are looked at closely
LOOK_AGAIN = 4  # after one that took long, who knows why: perhaps it had no core
EVERY_S = 2.0

_records: dict = {}  # loader number (-1 in a worker, which serves one) -> Record
_clock = time.monotonic_ns


class Record:
    """Times of the samples of one loader in this process. `usual` is their median in nanoseconds, 0 before it is known."""

    def __init__(self, loader: int) -> None:
        self.loader = loader
        self.usual = 0
        self.fetches = 0
        self.chooses = False  # single samples are fetched, and some of them may be traced
        self.close_until = CLOSE_UNTIL
        self.draws = Draws(loader)
        self._count = 0
        self._recent: deque = deque(maxlen=MEMORY)
        self._slow: dict = {}  # index -> [ns, times, file]
        self._early: list = []
        self._floor = 0
        self._changed = False
        self._next_s = 0.0
        self._next_usual = FIRST

    def seems_long(self) -> None:
        """The newest fetch took long, for a reason that was not looked at: look at the next ones."""
        self.close_until = max(self.close_until, self.fetches + LOOK_AGAIN)

    def was_long(self) -> None:
        """The newest fetch took long: look closely at those that follow."""
        self.close_until = max(self.close_until, self.fetches + LOOK_ON)

    def add(self, times: list, slow: list, dataset: object) -> None:
        """The samples of one fetch: nanoseconds of each, and (index, nanoseconds) of the slow ones."""
        if not times:
            return
        self._count += len(times)
        self._recent.extend(times)
        self._changed = True
        if self._count >= self._next_usual:
            self.usual = sorted(self._recent)[len(self._recent) // 2]
            self._next_usual = 2 * self._count if self._count < MEMORY else self._count + MEMORY
        if self.usual:
            slow = self._early + slow
            self._early = []
            limit = _limit(self.usual)
            for index, ns in slow:
                if ns > limit:
                    self._keep(index, ns, dataset)
        else:
            self._early += slow
        now = time.monotonic()
        if now >= self._next_s:
            self._next_s = now + EVERY_S
            self.write()

    def _keep(self, index: int, ns: int, dataset: object) -> None:
        entry = self._slow.get(index)
        if entry is not None:
            entry[0], entry[1] = max(entry[0], ns), entry[1] + 1
        elif ns > self._floor or len(self._slow) < KEPT:
            self._slow[index] = [ns, 1, file_of(dataset, index)]
            if len(self._slow) > KEPT:
                del self._slow[min(self._slow, key=lambda key: self._slow[key][0])]
                self._floor = min(entry[0] for entry in self._slow.values())

    def write(self) -> None:
        """The figures so far; a reader takes the newest."""
        if self._changed and self._recent:
            self._changed = False
            rows = [[index, *entry] for index, entry in self._slow.items()]
            usual = sorted(self._recent)[len(self._recent) // 2]
            fact("samples", loader=self.loader, count=self._count, usual_ns=usual, slow=rows)


def _limit(usual: int) -> int:
    return max(LEAST_NS, int(SLOW * usual)) if usual else EARLY_NS


class TimedDataset:
    """Stands in for `dataset` during one fetch."""

    __slots__ = ("_dataset", "_limit", "_waited", "slow", "times")

    def __init__(self, dataset: object, usual: int, waited: object) -> None:
        self._dataset = dataset
        self._limit = _limit(usual)
        self._waited = waited
        self.times: list = []
        self.slow: list = []

    def __getitem__(self, index):
        began = _clock()
        sample = self._dataset[index]
        ns = _clock() - began
        self.times.append(ns)
        if ns > self._limit and type(index) is int:
            self._look_at(index, ns)
        return sample

    def _look_at(self, index: int, ns: int) -> None:
        waited = waited_ns()
        if waited is not None and self._waited is not None:
            ns -= waited - self._waited
            self._waited = waited
        if ns > self._limit:
            self.slow.append((index, ns))


def record_of(fetcher) -> Record:
    """The record of the loader that this fetcher belongs to."""
    number = fetcher.__dict__.get("_trainflash_loader")
    if number is None:
        number = fetcher.__dict__["_trainflash_loader"] = _loader_number()
    record = _records.get(number)
    if record is None:
        record = _records[number] = Record(number)
    return record


def _loader_number() -> int:
    """Number of the loader whose iterator fetches in this process; -1 in a worker process."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "_next_data":
            return getattr(frame.f_locals.get("self"), "_trainflash", (0, -1))[1]
        frame = frame.f_back
    return -1


def note_batched(record: Record) -> None:
    """The loader's dataset makes whole batches: no single samples are timed."""
    if not record._next_s:
        record._next_s = 1.0
        fact("batched", loader=record.loader)


def write_all() -> None:
    """The newest figures of every loader."""
    for record in _records.values():
        record.write()


def after_fork() -> None:
    """A forked child times its own."""
    _records.clear()
