"""Forward work that one step does more than once: modules called again with equal inputs, that give an equal result.

A window remembers the calls of one step up to its first backward, and counts those of the step that follows, from there to the next
first backward: so what a program calls behind an update is seen, too. Of calls inside each other the outermost one that is a repetition
counts. Dropout makes another result, and so does a change of weights. A call that records for a backward pass repeats one that does
so, too, with no backward in between: the passes of an accumulated update are each their own. Of a call that records and one before it that
did not, the earlier one was for nothing. What a module without a gradient gets in every step is no work of one step: it counts only where
the module gets something new as well. Inputs on a device are not compared.

Beside that, the outermost modules that record for a backward pass though no optimizer holds a parameter of theirs, and their inputs need no
gradient: a teacher that nobody froze. All that backward does there is in vain. So it is in front of the update of another optimizer than
theirs, where such gradients are always thrown away.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from threading import get_ident

from .. import own
from ..guard import swallow
from ..nested import needs_grad
from ..phases import compiled, gaps
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import compiles
from .askers import asker
from .digests import digest_of
from .frozen import Frozen
from .thrown import Thrown
from .watched import is_watched, watching

AT_STEPS = (17, 26, 29)  # completed steps; other windows have 2 to 7, 9, 11, 12, 14, 16, 19, 21, 22, 24
MOST_LATE = 1  # steps by which a window may begin later
MAX_OVERHEAD_NS = 200_000_000  # our own work in one window
MAX_CALLS = 5_000  # of modules in one window
REMEMBERS, COUNTS, WAITS = "remembers", "counts", "waits"

_clock = time.perf_counter_ns


class _Call:
    """What a call of a module gave, where and when; `recorded_in` is None where it records for no backward pass."""

    __slots__ = ("counted", "made", "ns", "place", "recorded_in")

    def __init__(self, made: object, records: bool, backwards: int, place, ns: int, counted: bool) -> None:
        self.made, self.recorded_in, self.place, self.ns, self.counted = made, backwards if records else None, place, ns, counted


class Again(Observer):
    """Opens a window at a boundary, and closes it at the second first backward behind it, or at the boundary behind that."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._plan = list(AT_STEPS)
        self._call = None  # torch's own and ours
        self._state = None
        self.thrown, self.frozen = Thrown(), Frozen()
        self._forget()
        os.register_at_fork(after_in_child=self.on_exit)
        compiled.on_call.append(self.on_exit)

    def _forget(self) -> None:
        self._made: dict = {}  # (module, digest of its inputs) -> its last call
        self._rows: list = []  # (module, place, ns, whether it records, whether the first call was remembered only)
        self._new: set = set()  # modules that got something new
        # Calls that record for gradients that nobody takes: (place, whether it calls the module itself, whether an optimizer holds them),
        # (1, ns), and, where one holds them, the number of the update that follows in the window, and that optimizer.
        self._in_vain: list = []
        self._untrained: dict = {}  # module -> None: it is trained; 0: no optimizer holds it; the one that throws its gradients away
        self._owners: dict = {}  # parameter -> that optimizer
        self._updates: list = []  # the optimizers that have stepped in the window
        self._depth = self._calls = self._step = self._overhead = self._backwards = 0
        self._total_ns = self._recorded_ns = 0  # of outermost calls

    # --- when

    def plan_next(self) -> None:
        """Say when the next window opens."""
        if self._plan and self._state is None:
            loop.call_at(max(self._plan[0], loop.steps + 1), self._at_boundary)

    def _at_boundary(self) -> None:
        if self._state is not None:  # a step without a backward, or the second one of the window
            if loop.steps > self._step + 1 or self._state != COUNTS:
                self._close(write=False)
        elif self._plan and loop.steps >= self._plan[0]:
            in_time = loop.steps <= self._plan[0] + MOST_LATE
            if in_time and self._may_look():
                self._open()
            if self._state is not None or not in_time:
                self._plan.pop(0)
        if self._state is not None:
            loop.call_at(loop.steps + 1, self._at_boundary)
        else:
            self.plan_next()

    def _may_look(self) -> bool:
        compiling = gaps._compiles or compiles.source.used
        quiet = sys.gettrace() is None and loop.gap is None and not compiling and loop.tid == get_ident()
        return quiet and not is_watched(self._torch)

    def _backward_begins(self, tensors: tuple, grad_tensors: object) -> None:
        if loop.evaluating:
            return
        self._backwards += 1
        if self._state == REMEMBERS:
            self._state = COUNTS
        elif loop.steps > self._step:
            self._close(write=True)

    def on_exit(self) -> None:
        """Put everything back."""
        self._close(write=False)

    def _open(self) -> None:
        self._forget()
        self._state, self._step = REMEMBERS, loop.steps
        module = self._torch.nn.Module
        self._call = module.__call__, self._wrapped(module.__call__)
        module.__call__ = self._call[1]
        loop.on_backward.append(self._backward_begins)
        self._owners = self.thrown.owners()
        if self._owners:
            loop.on_update.append(self._stepped)
        for step in (loop.steps, loop.steps + 1):
            fact("slowed", step=step)

    def _close(self, write: bool) -> None:
        if self._state is None:
            return
        if self._state == WAITS:
            self._end(write)
            return
        self._state = None
        module = self._torch.nn.Module
        if module.__call__ is self._call[1]:
            module.__call__ = self._call[0]
        loop.on_backward = [method for method in loop.on_backward if method != self._backward_begins]
        if write and self._owners and any(update and update[0] >= len(self._updates) for _, _, update in self._in_vain):
            self._state = WAITS  # for the update that the last calls were made for
            return
        self._end(write)

    def _stepped(self, optimizer: object) -> None:
        self._updates.append(id(optimizer))
        if self._state == WAITS:
            self._end(write=True)

    def _end(self, write: bool) -> None:
        self._state = None
        loop.on_update = [method for method in loop.on_update if method != self._stepped]
        if write:
            self._write()
        self._forget()

    # --- calls

    def _wrapped(self, original):
        @functools.wraps(original)
        def __call__(module, *args, **kwargs):
            other = loop.in_data or loop.in_bwd or loop.evaluating  # in an update only a closure calls modules
            if self._state is None or other or loop.tid != get_ident():
                return original(module, *args, **kwargs)
            return self._noted(original, module, sys._getframe(1), args, kwargs)

        return watching(__call__)

    def _noted(self, original, module, frame, args: tuple, kwargs: dict):
        """Call the module; an error of ours is none of the program's."""
        began = _clock()
        key, rows, vain = self._key(module, args, kwargs), len(self._rows), len(self._in_vain)
        self.frozen.called(module, frame, args, kwargs, outermost=not self._depth)
        self._overhead += _clock() - began
        before, began = self._overhead, _clock()
        self._depth += 1
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._depth -= 1
        ended = _clock()
        ns = max(0, ended - began - (self._overhead - before))
        records = needs_grad(result)
        if not self._depth and self._state == COUNTS:
            self._total_ns += ns
            self._recorded_ns += ns * records
        if records and self._state == COUNTS and (loop.in_vain or self._owners):
            self._recorded(module, vain, frame, (args, kwargs), ns)
        if key is not None:
            self._returned(key, rows, frame, result, ns, records)
        self._overhead += _clock() - ended
        return result

    def _recorded(self, module, before: int, frame, given: tuple, ns: int) -> None:
        """Note a call that recorded for nothing, in place of those inside it."""
        try:
            if module not in self._untrained:
                self._untrained[module] = self._optimizer_of([id(each) for each in module.parameters() if each.requires_grad])
            known = self._untrained[module]
            if known is not None and not needs_grad(given):
                del self._in_vain[before:]
                key = asker(frame), own.is_own(frame.f_code), bool(known)
                self._in_vain.append((key, (1, ns), (len(self._updates), known) if known else None))
        except Exception as error:
            swallow("again", error)

    def _optimizer_of(self, graded: list) -> "int | None":
        """What is kept in `_untrained` of a module with these parameters."""
        if not graded:
            return None
        if loop.in_vain and loop.in_vain.issuperset(graded):
            return 0
        owners = {self._owners.get(each) for each in graded}
        return owners.pop() if len(owners) == 1 else None

    def _key(self, module, args: tuple, kwargs: dict):
        self._calls += 1
        if self._calls > MAX_CALLS or self._overhead > MAX_OVERHEAD_NS:
            return None
        with loop.unseen():
            given = digest_of((args, kwargs), by_identity=True)
        return None if given is None else (id(module), given)

    def _returned(self, key: tuple, rows: int, frame, result: object, ns: int, records: bool) -> None:
        try:
            with loop.unseen():
                made = digest_of(result, by_identity=False)
            if made is None:
                return
            counts, before = self._state == COUNTS, self._made.get(key)
            call = _Call(made, records, self._backwards, asker(frame), ns, counts)
            if before is not None and before.made == made and (not records or before.recorded_in == call.recorded_in):
                if counts:
                    del self._rows[rows:]
                    self._rows.append((key[0], call.place, ns, records, not before.counted))
                return
            if counts:
                self._new.add(key[0])
                if before is not None and before.made == made and before.recorded_in is None:
                    del self._rows[rows:]
                    self._rows.append((key[0], before.place, before.ns, False, False))
            self._made[key] = call
        except Exception as error:
            swallow("again", error)

    def _write(self) -> None:
        """One fact for the window, where there was a forward pass."""
        if not self._total_ns:
            return
        rows = _added_up(
            ((place,), (1, ns, ns * records))
            for module, place, ns, records, remembered in self._rows
            if records or not remembered or module in self._new
        )
        vain = [(key, figures) for key, figures, update in self._in_vain if update is None or self._another(*update)]
        in_vain = None if loop.in_vain is None else [] if loop.by_hand else _added_up(vain)
        fact("again", total_ns=self._total_ns, recorded_ns=self._recorded_ns, rows=rows, in_vain=in_vain)

    def _another(self, number: int, owner: int) -> bool:
        """Whether another optimizer than `owner` made that update of the window."""
        return number < len(self._updates) and self._updates[number] != owner


def _added_up(rows) -> list:
    """Figures of calls with the same key, whose first part is a place, together: [place, rest of the key, figures]."""
    found: dict = {}
    for (place, *more), figures in rows:
        key = (tuple(place or ()), *more)
        found[key] = [old + new for old, new in zip(found[key], figures)] if key in found else list(figures)
    return [[list(place) or None, *more, *figures] for (place, *more), figures in found.items()]


def install(torch) -> None:
    """Plan the windows."""
    watch = Again(torch)
    loop.add(watch)
    loop.add(watch.thrown)
    loop.add(watch.frozen)
    watch.plan_next()
