"""Runs of the baseline that differ by chance alone, to learn how far chance moves it. TRAINFLASH_VARY is `order:K` or `seed:K`.

`order:K`: when training begins the global random streams, and the generators and seeds that samplers own, go on from another state:
the samples come in another order and dropout draws other masks, from the same initial weights. `seed:K`: whatever the program seeds
its global random streams with, it gets another seed.
"""

from __future__ import annotations

import functools
import inspect
import os
import random
import sys

from .. import imports
from ..patches import like
from ..phases.observer import Observer

_STRIDE = 7919  # a prime: seeds that programs count up do not meet


def wanted():
    """`(kind, K)`, or None when this run is not to vary."""
    kind, _, number = os.environ.get("TRAINFLASH_VARY", "").partition(":")
    return (kind, int(number)) if kind in ("order", "seed") and number.isdigit() else None


class OrderVariation(Observer):
    """Moves the random streams once, at the first batch or the first training forward, and each sampler's own once."""

    def __init__(self, torch, number):
        self._torch, self._number = torch, number
        self._begun = False
        self._moved: list = []
        loader = torch.utils.data.DataLoader
        loader.__iter__ = self._iterated(loader.__iter__)

    def on_forward(self, module, args, kwargs):
        if not self._begun and self._torch.is_grad_enabled() and next(iter(module.parameters()), None) is not None:
            self._begin()

    def _iterated(self, original):
        @functools.wraps(original)
        def __iter__(loader):
            if not self._begun:
                self._begin()
            for owner in (loader, loader.sampler, loader.batch_sampler):
                self._move(owner)
            return original(loader)

        return __iter__

    def _begin(self):
        self._begun = True
        seed = _STRIDE * self._number
        self._torch.default_generator.manual_seed(seed)
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "random"):
            numpy.random.seed(seed)

    def _move(self, owner):
        if owner is None or any(owner is each for each in self._moved):
            return
        self._moved.append(owner)
        generator = getattr(owner, "generator", None)
        if isinstance(generator, self._torch.Generator) and not any(generator is each for each in self._moved):
            self._moved.append(generator)
            generator.manual_seed(_STRIDE * self._number)
        if isinstance(getattr(owner, "seed", None), int) and hasattr(owner, "set_epoch"):
            owner.seed += _STRIDE * self._number


class Seeds:
    """Notes whether the program seeds a global random stream; with `offset` it gets that much more than it asks for."""

    def __init__(self, torch, offset=0):
        self.seen = False
        self._offset = offset
        torch.manual_seed = torch.random.manual_seed = self._seeding(torch.manual_seed)
        random.seed = self._seeding(random.seed)
        imports.after("numpy", self._numpy)

    def _numpy(self, numpy):
        numpy.random.seed = self._seeding(numpy.random.seed)

    def _seeding(self, original):
        if inspect.ismethod(original):
            return _Method(original, self._exchanged)

        @like(original)
        def seed(*args, **kwargs):
            words, rest = self._exchanged(args, kwargs)
            return original(*words, **rest)

        return seed

    def _exchanged(self, args, kwargs):
        words = list(args) if args else [kwargs.pop(name) for name in ("seed", "a") if name in kwargs]
        if words and isinstance(words[0], int):
            self.seen = True
            words[0] = (words[0] + self._offset) % (1 << 32) if self._offset else words[0]
        return words, kwargs


class _Method:
    """A bound method with its arguments exchanged. Pickled it is the method itself: there is no name by which a function in its place could
    be found, and a worker that is handed `random.seed` seeds a generator of its own with it, not the global one."""

    def __init__(self, original, exchange):
        self._original, self._exchange = original, exchange

    def __call__(self, *args, **kwargs):
        words, rest = self._exchange(args, kwargs)
        return self._original(*words, **rest)

    def __getattr__(self, name):
        if name in ("_original", "_exchange"):
            raise AttributeError(name)
        return getattr(self._original, name)

    def __reduce_ex__(self, protocol):
        return self._original.__reduce_ex__(protocol)
