"""A census of the operators of a few early steps, on the host.

Torch's own recorder for that (the autograd profiler without Kineto) is switched on at a step boundary and off after the step's last
update, on the training thread: it starts no device activity, so it never waits for a device, and prints nothing. The reader is told the
steps, and leaves them out of all statistics. Where attention was seen that does not run in a fused kernel, float64, convolutions or a loss
over classes, the step after a census shows more: their entry points are wrapped for that one step. Other steps, early and late ones, show
the lines of all calls (see `op_lines`). A network of functions alone may be
seen first when its backward begins, with its forward behind the update before: there both go from update to update. Neither happens in a
program that uses a profiler of its own, nor while something compiles or traces; nothing is wrapped in a program that compiles, for its
guards would see it.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from threading import get_ident

from .. import imports
from ..guard import swallow
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import compiles
from .attention_lines import AttentionLines
from .convolution_setup import ConvolutionSetup
from .double_lines import DoubleLines, numbers_of_double
from .op_lines import OperatorLines
from .operators import CLOCK, FETCH, backwards, read
from .target_lines import TargetLines

AT_STEPS = (6, 24)  # completed steps
LINES_AT = (15, 28, 60, 240, 960, 3840, 15360, 61440)  # completed steps; far apart, for what they show may change over a run
WATCHED_NS = 15_000  # own: what watching a call and recording what it does adds to a step, about
UNNOTICED = 0.02  # part of a step; one that was slowed by less stays a usual one
TRIES = 3  # steps to wait for a quiet one
LONG_STEP_S = 1.0  # own: of steps that long few are seen, so the first two records are taken at once
EARLIEST, SOON = 2, 2  # completed steps, and records that are taken so early
LONGEST_STEP_S = 5.0  # a longer one may hold more operators than may be recorded
MOST_COST_S = 0.2  # no second census where the first one cost more
MOST_LINES_COST_S = 1.0  # the same for lines, which come ever more seldom

running = None  # the census whose recorder is on
showing = False  # the lines of attention, of float64 and the like are looked at

_clock = time.perf_counter


class Census(Observer):
    """Plans, takes and writes the censuses."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._native = torch._C._autograd
        self._plan = _plan(0)
        self._calls = None  # lines of all calls, where the step that is recorded shows them
        self._tries = 0
        self._last = 0.0
        self._step = -1
        self._began_s = 0.0
        self._compiled = 0
        self._lines: list = []
        self._double: set = set()  # sequence numbers of what the step computed in float64
        self._saved = None  # what the loop is to do behind an update, while that is ours
        self._behind = False  # from update to update
        self._outside: list = []  # spans of the step, µs from its begin, in which its batches are made: before a forward, behind a backward
        self._since_us = 0.0  # such a span is open since then; negative: none is
        self.forbidden = False
        loop.on_found.append(self._begin_anew)

    def _begin_anew(self) -> None:
        """What was taken for steps may have been parts of them."""
        if not self.forbidden and loop.steps > AT_STEPS[0]:
            self._plan = _plan(loop.steps)
            loop.listen(self.on_boundary, self.on_exit)

    # --- switching on and off

    def on_boundary(self, step: int) -> None:
        """Begins a planned census, or the step that shows lines; listens no more after the last."""
        now = _clock()
        if self._behind:
            return
        if self._lines:
            if not showing:
                self._show()
                return
            self._end_lines(step)
        if running is self and self._late_s:
            self._read(self._late_s)
        elif running is self:
            self.abort()
        if not self._plan or self.forbidden:
            loop.remove(self.on_boundary, self.on_exit)
            return
        length, self._last = now - self._last, now
        if step >= self._plan[0][0] or self._few_to_come(step, length):
            if self._quiet() and length < LONGEST_STEP_S:
                shows_lines = self._next()
                if shows_lines and compiles.source.used:
                    return
                self._calls = OperatorLines(self._torch) if shows_lines else None
                self._plan_begin(step)
                return
            self._tries += 1
            if self._tries >= TRIES:
                self._next()

    def _few_to_come(self, step: int, length_s: float) -> bool:
        taken = len(AT_STEPS) + len(LINES_AT) - len(self._plan)
        return length_s >= LONG_STEP_S and step >= EARLIEST and taken < SOON

    def _next(self) -> bool:
        """Go on to the next plan; whether this one shows lines."""
        self._tries = 0
        return self._plan.pop(0)[1]

    def on_exit(self) -> None:
        """The program ends inside a census: a part of a step says nothing."""
        self.abort()
        if showing:  # of a thread that trains beside the main one
            self._end_lines(loop.steps + 1)

    def _show(self) -> None:
        global showing
        showing = True
        for each in self._lines:
            each.begin()

    def _end_lines(self, step: int) -> None:
        global showing
        showing = False
        for each in self._lines:
            each.end(step)
        self._lines = []

    def _quiet(self) -> bool:
        compiled, self._compiled = self._compiled, len(compiles.source.spans)
        return (
            not self._native._profiler_enabled()
            and compiled == self._compiled
            and not compiles.source.compiling
            and sys.gettrace() is None
            and loop.gap is None
            and loop.tid == get_ident()
            and not loop.evaluating
        )

    def _plan_begin(self, step: int) -> None:
        self._behind = not loop.trained
        if self._behind:
            self._behind_update(step, self._begin_behind)
        else:
            self._begin(step)

    def _behind_update(self, step: int, method) -> None:
        """Call `method()` right after the last update of that step."""
        self._saved = self._saved or (loop.trace_gap_at, loop.trace_gap)
        loop.trace_gap_after(step + 1, method)

    def _release(self) -> None:
        """What was to be done behind updates is to be done again."""
        if self._saved is not None:
            loop.trace_gap_after(*self._saved)
            self._saved = None

    def _begin_behind(self) -> None:
        if self.forbidden or loop.in_bwd or not self._quiet():
            self._release()
            self._behind = False
            return
        fact("slowed", step=loop.steps)
        self._begin(loop.steps + 1)

    def _end_behind(self) -> None:
        """The update behind the lines that were looked at."""
        if showing:
            self._end_lines(loop.steps + 1)
        self._release()
        self._behind = False

    def _begin(self, step: int) -> None:
        global running
        self._step = step
        self._behind_update(step, self.completed)
        self._native._enable_profiler_legacy(_config(self._torch))
        running = self
        with self._torch.autograd.profiler.record_function(CLOCK):
            self._began_s, self._late_s = _clock(), 0.0
        self._outside, self._since_us, self._double = [], self._from(0.0), set()
        loop.around_data = self._making_a_batch
        if self._calls is not None:
            self._calls.begin()
        loop.on_forward.append(self.on_forward)
        loop.on_backward.append(self.on_backward)
        loop.on_rolling.append(self.on_rolling)

    def on_rolling(self, begins: bool) -> None:
        """Rollouts make the batches of the updates behind them."""
        if begins and self._since_us < 0:
            self._since_us = self._from(1e6 * (_clock() - self._began_s))

    def _from(self, now_us: float) -> float:
        """A batch begins to be made, where a forward can end that: a network of functions alone is never seen to begin."""
        return now_us if loop.trained else -1.0

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A forward ends the making of its batch; one of rollouts is a part of that."""
        if self._since_us >= 0 and not loop.rolling:
            self._outside.append((self._since_us, 1e6 * (_clock() - self._began_s)))
            self._since_us = -1.0

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """What is neither backward nor update is the next batch's, if a forward follows."""
        self._since_us = self._from(1e6 * (_clock() - self._began_s))
        try:
            self._double |= numbers_of_double([tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None], self._torch)
        except Exception as error:
            swallow("float64", error)

    def _making_a_batch(self, original, args: tuple, kwargs: dict):
        """A data function, named in the record as a loader's fetch is."""
        with self._torch.autograd.profiler.record_function(f"{FETCH}#data function"):
            return original(*args, **kwargs)

    def _stop(self):
        global running
        running = None
        loop.around_data = None
        loop.remove(self.on_forward, self.on_backward, self.on_rolling)
        self._release()
        if self._calls is not None:
            self._calls.end()
        return self._native._disable_profiler_legacy()

    def abort(self) -> None:
        """Switch off at once: a profiler of the program's or a child process begins."""
        if running is self and loop.tid == get_ident():
            try:
                self._stop()
            except Exception as error:
                swallow("census", error)
            fact("slowed" if self._calls is not None else "census", step=self._step)
            self._behind = False
        if showing and loop.tid == get_ident():  # inside the step that is looked at
            self._end_lines(loop.steps + 1)
            if self._behind:
                self._end_behind()

    def completed(self) -> None:
        """The last update of the step is done; reading costs time that is still this step's."""
        if running is not self or loop.tid != get_ident():
            return
        if loop.in_bwd:  # autograd brings back what was on when the backward began: from inside it nothing can be switched off
            self._late_s = _clock()
        else:
            self._read(_clock())

    def _read(self, now: float) -> None:
        if self._calls is not None:
            self._read_lines(now)
            return
        counted = read(self._stop(), self._outside, self._since_us, self._double) or {}
        fact("census", step=self._step, ns=int(1e9 * (now - self._began_s)), **counted)
        if not compiles.source.used:
            shown = {AttentionLines: "attention", DoubleLines: "double_ns", ConvolutionSetup: "convs", TargetLines: "targets"}
            self._lines = [kind(self._torch) for kind, figure in shown.items() if counted.get(figure)]
        if self._behind and self._lines:
            self._show()
            self._behind_update(loop.steps + 1, self._end_behind)
        else:
            self._behind = False
        if _clock() - now > MOST_COST_S:
            self._plan = [each for each in self._plan if each[1]]

    def _read_lines(self, now: float) -> None:
        self._behind = False
        spent = backwards(self._stop())
        ns = int(1e9 * (now - self._began_s))
        if spent is not None:
            self._calls.write(self._step, ns, *spent)
        cost_s = _clock() - now
        if WATCHED_NS * self._calls.count + 1e9 * cost_s > UNNOTICED * ns:
            fact("slowed", step=self._step)
        self._calls = None
        if cost_s > MOST_LINES_COST_S:
            self._plan = [each for each in self._plan if not each[1]]

    def forbid(self, original):
        """An entry point of the program's own profilers: from its first use on there is no census."""

        @functools.wraps(original)
        def begins(*args, **kwargs):
            self.forbidden = True
            self.abort()
            return original(*args, **kwargs)

        return begins


def _plan(since: int) -> list:
    """(completed steps, whether the step shows lines) in order."""
    return sorted([(since + step, False) for step in AT_STEPS] + [(since + step, True) for step in LINES_AT])


def _config(torch):
    profiler = torch._C._profiler
    return profiler.ProfilerConfig(profiler.ProfilerState.CPU, True, False, False, False, False, profiler._ExperimentalConfig())


def install(torch):
    """Plan the censuses, and know when the program profiles itself. None where this torch has no recorder of that kind."""
    if not hasattr(torch._C._autograd, "_enable_profiler_legacy"):
        return None
    source = Census(torch)
    profiler = torch.autograd.profiler
    for owner, name in ((profiler.profile, "__init__"), (profiler.emit_nvtx, "__enter__"), (profiler.emit_itt, "__enter__")):
        setattr(owner, name, source.forbid(getattr(owner, name)))
    imports.after("torch.autograd.profiler_legacy", lambda module: _forbid_legacy(module, source))
    os.register_at_fork(before=source.abort)
    loop.add(source)
    loop.remove(source.on_forward, source.on_backward)  # only while a census is taken
    return None


def _forbid_legacy(module, source: Census) -> None:
    module.profile.__enter__ = source.forbid(module.profile.__enter__)
