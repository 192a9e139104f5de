"""How a loader makes its batches: a hash of the owner's code that does it, and the random streams that it draws from."""

from __future__ import annotations

import functools
import hashlib
import types

from .. import generators, own
from ..objects import attributes_of, held_in, is_a

LOOKS = 16  # first fetches of one process that are asked whether they draw
_MOST = 2_000  # objects and functions that are looked at
_PARTS = ("dataset", "collate_fn", "sampler", "batch_sampler", "worker_init_fn")
_PLAIN = (int, float, str, bytes, bool, type(None))


def code(loader):
    """A hash of the owner's functions that a loader reaches: of its data set, its samplers and what joins samples, and what these call."""
    found, seen, todo = {}, set(), [attributes_of(loader).get(name) for name in _PARTS]
    while todo and len(seen) < _MOST:
        each = todo.pop()
        if id(each) in seen or is_a(each, *_PLAIN):
            continue
        seen.add(id(each))
        function = own.code_of(each)
        if function is not None:
            if own.is_own(function):
                found[own.name_of(function), function.co_firstlineno] = function
                todo += [each.__globals__.get(name) for name in _names(function)] if type(each) is types.FunctionType else [each.__func__]
        elif is_a(each, type):
            todo += [part for base in each.__mro__ for part in vars(base).values() if _owners(part)]
        elif is_a(each, property):
            todo += [each.fget, each.fset]
        elif is_a(each, functools.partial):
            todo += [each.func, *each.args]
        elif is_a(each, list, tuple, dict):
            todo += [part for _, part in (held_in(each) or ())[:_MOST]]
        elif not is_a(each, types.ModuleType):
            todo += [type(each), *attributes_of(each).values()]
    hashes = sorted(_hash(function) for function in found.values())
    return hashlib.blake2b("".join(hashes).encode(), digest_size=8).hexdigest()


def _owners(part):
    function = own.code_of(part.fget if is_a(part, property) else part)
    return function is not None and own.is_own(function)


def _names(code):
    return [*code.co_names, *(name for const in code.co_consts if type(const) is types.CodeType for name in _names(const))]


def _hash(code):
    """Of what a function does; not of where it stands."""
    inner = [_hash(const) if type(const) is types.CodeType else repr(const) for const in code.co_consts]
    text = repr((own.name_of(code), code.co_code, code.co_names, code.co_varnames, inner))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Drawing:
    """Asks the first fetches of this process which random streams they draw from; `told(names)` is called for those that are new.

    A name is python, torch, numpy, or held: a generator of the data set's own.
    """

    def __init__(self, dataset, told):
        self._held = generators.held_by(dataset)
        self._told, self._known, self._looks = told, set(), 0

    def begin(self):
        """The states that a fetch begins with; None where no look is needed."""
        if self._looks >= LOOKS:
            return None
        self._looks += 1
        return generators.states(self._held)

    def end(self, before):
        """Compare with the states behind the fetch."""
        if before is None:
            return
        now = generators.states(self._held)
        count = len(now) - len(self._held)
        names = [*("python", "torch", "numpy")[:count], *("held" for _ in self._held)]
        if len(before) == len(now):
            drawn = {name for name, old, new in zip(names, before, now) if not generators.equal(old, new)}
            if drawn - self._known:
                self._known |= drawn
                self._told(sorted(self._known))

    def state(self):
        """A hash of the generators of its own; None without one."""
        found = generators.states(self._held)[-len(self._held) :] if self._held else []
        found = [each.tolist() if hasattr(each, "tolist") else each for each in found]
        return hashlib.blake2b(repr(found).encode(), digest_size=8).hexdigest() if found else None


def watch_fetches(torch, ask):
    """Let `ask(dataset)` give the `Drawing` of the process for a fetcher's data set, or None."""
    fetch = torch.utils.data._utils.fetch
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = _watched(fetcher.fetch, ask)


def _watched(original, ask):
    @functools.wraps(original)
    def watched(fetcher, index):
        drawing = before = None
        try:
            drawing = ask(fetcher.dataset)
            before = drawing.begin() if drawing is not None else None
        except Exception:  # in the owner's fetch nothing of ours may fail; a missing line is a signal that was not measured
            drawing = None
        made = original(fetcher, index)
        try:
            if drawing is not None:
                drawing.end(before)
        except Exception:
            return made
        return made

    return watched
