"""The random streams that a loader's workers begin with, and draw from: workers that share one draw the same, which no input tells."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import random
import sys

from . import making

_here = {}  # data set (by its id) -> what the fetches of this process are asked
_told = None  # in the training process: called with the streams that its own fetches draw from
_watching = False


class Watched:
    """A `worker_init_fn` that calls the owner's, then writes one line into `workers-<pid of the training process>.jsonl`."""

    def __init__(self, original, directory):
        self._original, self._directory, self._parent = original, directory, os.getpid()

    def __call__(self, worker):
        if self._original is not None:
            self._original(worker)
        try:
            self._write(worker)
        except Exception:  # in the owner's worker nothing of ours may fail; a missing line is a signal that was not measured
            return

    def _write(self, worker):
        torch = sys.modules["torch"]
        dataset = torch.utils.data.get_worker_info().dataset
        drawing = making.Drawing(dataset, lambda names: self._append({"drew": names}))
        _watch(torch, None)  # a worker that was not forked does not watch yet
        _here.clear()
        _here[id(dataset)] = drawing
        line = {"worker": worker, "python": _short(repr(random.getstate())), "torch": str(torch.initial_seed())}
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            state = numpy.random.get_state()
            line["numpy"] = _short(repr(state[2:]), state[1].tobytes())
        if (held := drawing.state()) is not None:
            line["held"] = held
        self._append(line)

    def _append(self, line):
        with open(os.path.join(self._directory, f"workers-{self._parent}.jsonl"), "a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")


def _short(text, data=b""):
    return hashlib.blake2b(text.encode() + data, digest_size=8).hexdigest()


def _asked(dataset):
    drawing = _here.get(id(dataset))
    if drawing is None and _told is not None:
        drawing = _here[id(dataset)] = making.Drawing(dataset, _told)
    return drawing


def _watch(torch, told):
    global _told, _watching
    _told = told
    if not _watching:
        making.watch_fetches(torch, _asked)
    _watching = True


def install(torch, directory, told):
    """Watch the workers of every loader from now on; `told(names)`: streams that fetches of this process itself draw from."""
    _watch(torch, told)
    loader = torch.utils.data.DataLoader
    original = loader._get_iterator

    @functools.wraps(original)
    def _get_iterator(this):
        owners = this.worker_init_fn
        if this.num_workers > 0 and not isinstance(owners, Watched):
            this.worker_init_fn = Watched(owners, directory)
        try:
            return original(this)
        finally:
            this.worker_init_fn = owners

    loader._get_iterator = _get_iterator
