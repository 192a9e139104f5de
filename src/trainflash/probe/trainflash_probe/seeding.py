"""The seed that TRAINFLASH_SEED names, for the global random streams and for every generator that the program makes without a seed.

A generator without a seed takes the machine's entropy, and no two runs of the program could be compared. The first one of a process gets
one number, the second another one, and each rank and each child process its own; the same program makes the same generators again.
Instances of `random.Random` that the standard library makes, as for the names of temporary files, or that a library makes when it is
imported, are left alone: names must differ.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import sys

from . import imports, own, process
from .guard import swallow

_LIBRARY = os.path.join(os.path.dirname(os.path.realpath(os.__file__)), "")


class _Made:
    """Generators of this process that got a number of ours, `own` of them by the owner's code; its place among its parents' children."""

    count = own = forks = 0
    path: tuple = ()


made = _Made()


def install(torch) -> None:
    """Seed the global streams and what is made from now on; nothing without TRAINFLASH_SEED."""
    if not os.environ.get("TRAINFLASH_SEED"):
        return
    seed = int(os.environ["TRAINFLASH_SEED"])
    random.seed(seed)
    torch.manual_seed(seed)
    imports.after("numpy", lambda numpy: numpy.random.seed(seed))
    own_generators()


def own_generators() -> None:
    """Exchange the entropy of generators that are made without a seed."""
    random.Random.__init__ = _without_seed(random.Random.__init__)
    imports.after("numpy", _numpy)
    os.register_at_fork(before=_forking, after_in_child=_forked)


def entropy(bits: int) -> int:
    """The next number of this process."""
    made.count += 1
    made.own += own.own_frame(sys._getframe(1), own.imports) is not None
    multiprocessing = sys.modules.get("multiprocessing.process")
    identity = getattr(multiprocessing.current_process(), "_identity", ()) if multiprocessing is not None else ()
    words = [os.environ.get(name, "") for name in ("TRAINFLASH_SEED", "TRAINFLASH_VARY")]
    text = repr((words, process.rank(), made.path, identity, made.count))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=max(1, min(64, bits // 8))).digest(), "little")


def _without_seed(original):
    @functools.wraps(original)
    def __init__(self, x=None):
        if x is None:
            try:
                caller = sys._getframe(1)
                x = entropy(128) if own.own_frame(caller, own.imports) and not _of_the_library(caller) else None
            except Exception as error:
                swallow("own generators", error)
        original(self, x)

    return __init__


def _of_the_library(frame) -> bool:
    name = frame.f_code.co_filename
    return name.startswith("<frozen") or (os.path.realpath(name).startswith(_LIBRARY) and "-packages" not in name)


def _numpy(numpy) -> None:
    """All of its generators take entropy by one function."""
    source = numpy.random.bit_generator
    if callable(getattr(source, "randbits", None)):
        source.randbits = entropy


def _forking() -> None:
    made.forks += 1


def _forked() -> None:
    made.path, made.forks, made.count = (*made.path, made.forks), 0, 0
