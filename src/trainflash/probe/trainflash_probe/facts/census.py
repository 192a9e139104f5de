"""A census of the operators of a few early steps, on the host.

Torch's own recorder for that (the autograd profiler without Kineto) is switched on at a step boundary and off after the step's last
update, on the training thread: it starts no device activity, so it never waits for a device, and prints nothing. The reader is told the
steps, and leaves them out of all statistics. Where attention was seen that does not run in a fused kernel, the step after a census shows
the owner's lines: the entry points of softmax, exp and attention are wrapped for that one step. Neither happens in a program that uses a
profiler of its own, nor while something compiles or traces; nothing is wrapped in a program that compiles, for its guards would see it.
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
from . import compiles, weights
from .askers import asker
from .operators import CLOCK, FETCH, read

AT_STEPS = (6, 24)  # completed steps
TRIES = 3  # steps to wait for a quiet one
LONGEST_STEP_S = 5.0  # a longer one may hold more operators than may be recorded
MOST_COST_S = 0.2  # no second census where the first one cost more

running = None  # the census whose recorder is on
showing = False  # the lines of attention are looked at

_clock = time.perf_counter


class Census(Observer):
    """Plans, takes and writes the censuses."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._native = torch._C._autograd
        self._plan = list(AT_STEPS)
        self._tries = 0
        self._last = 0.0
        self._step = -1
        self._began_s = 0.0
        self._compiled = 0
        self._lines = None
        self._saved = (0, None)
        self._outside: list = []  # spans of the step, µs from its begin, in which its batches are made: before a forward, behind a backward
        self._since_us = 0.0  # such a span is open since then; negative: none is
        self.forbidden = False

    # --- switching on and off

    def on_boundary(self, step: int) -> None:
        """Begins a planned census, or the step that shows lines; listens no more after the last."""
        now = _clock()
        if self._lines is not None:
            if not self._lines.begun:
                self._lines.begin()
                return
            self._lines.end(step)
            self._lines = None
        if running is self and self._late_s:
            self._read(self._late_s)
        elif running is self:
            self.abort()
        if not self._plan or self.forbidden:
            loop.remove(self.on_boundary, self.on_exit)
            return
        length, self._last = now - self._last, now
        if step >= self._plan[0]:
            if self._quiet() and length < LONGEST_STEP_S:
                self._next()
                self._begin(step)
                return
            self._tries += 1
            if self._tries >= TRIES:
                self._next()

    def _next(self) -> None:
        self._plan.pop(0)
        self._tries = 0

    def on_exit(self) -> None:
        """The program ends inside a census: a part of a step says nothing."""
        self.abort()
        if self._lines is not None:
            self._lines.end(loop.steps)
            self._lines = None

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

    def _begin(self, step: int) -> None:
        global running
        self._step = step
        self._saved = loop.trace_gap_at, loop.trace_gap
        loop.trace_gap_after(step + 1, self.completed)
        self._native._enable_profiler_legacy(_config(self._torch))
        running = self
        with self._torch.autograd.profiler.record_function(CLOCK):
            self._began_s, self._late_s = _clock(), 0.0
        self._outside, self._since_us = [], 0.0
        loop.around_data = self._making_a_batch
        loop.on_forward.append(self.on_forward)
        loop.on_backward.append(self.on_backward)

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A forward ends the making of its batch."""
        if self._since_us >= 0:
            self._outside.append((self._since_us, 1e6 * (_clock() - self._began_s)))
            self._since_us = -1.0

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """What is neither backward nor update is the next batch's, if a forward follows."""
        self._since_us = 1e6 * (_clock() - self._began_s)

    def _making_a_batch(self, original, args: tuple, kwargs: dict):
        """A data function, named in the record as a loader's fetch is."""
        with self._torch.autograd.profiler.record_function(f"{FETCH}#data function"):
            return original(*args, **kwargs)

    def _stop(self):
        global running
        running = None
        loop.around_data = None
        loop.remove(self.on_forward, self.on_backward)
        loop.trace_gap_after(*self._saved)
        return self._native._disable_profiler_legacy()

    def abort(self) -> None:
        """Switch off at once: a profiler of the program's or a child process begins."""
        if running is self and loop.tid == get_ident():
            try:
                self._stop()
            except Exception as error:
                swallow("census", error)
            fact("census", step=self._step)

    def completed(self) -> None:
        """The last update of the step is done; reading costs time that is still this step's."""
        if running is not self or loop.tid != get_ident():
            return
        if loop.in_bwd:  # autograd brings back what was on when the backward began: from inside it nothing can be switched off
            self._late_s = _clock()
        else:
            self._read(_clock())

    def _read(self, now: float) -> None:
        counted = read(self._stop(), self._outside, self._since_us) or {}
        fact("census", step=self._step, ns=int(1e9 * (now - self._began_s)), **counted)
        if counted.get("attention") and not compiles.source.used:
            self._lines = AttentionLines(self._torch)
        if _clock() - now > MOST_COST_S:
            self._plan = []

    def forbid(self, original):
        """An entry point of the program's own profilers: from its first use on there is no census."""

        @functools.wraps(original)
        def begins(*args, **kwargs):
            self.forbidden = True
            self.abort()
            return original(*args, **kwargs)

        return begins


def _config(torch):
    profiler = torch._C._profiler
    return profiler.ProfilerConfig(profiler.ProfilerState.CPU, True, False, False, False, False, profiler._ExperimentalConfig())


class AttentionLines:
    """The owner's lines of softmax, exponentials and attention calls inside forward, during one step, and whose weights are used."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._rows: dict = {}  # (kind, place, shape, reason) -> calls
        self._inside = False
        self._saved: list = []
        self._nodes: list = []  # (row, node of the graph) of weights whose backward has not begun
        self.begun = False

    def begin(self) -> None:
        """Wrap the entry points."""
        global showing
        self.begun = showing = True
        loop.on_backward.append(self.on_backward)
        torch = self._torch
        functional = torch.nn.functional
        for owner, name, kind in (
            (torch, "softmax", "softmax"),
            (functional, "softmax", "softmax"),
            (torch.Tensor, "softmax", "softmax"),
            *((owner, name, "exp") for owner in (torch, torch.Tensor) for name in ("exp", "exp_", "exp2")),
            (functional, "scaled_dot_product_attention", "sdpa"),
        ):
            had = name in vars(owner)
            original = getattr(owner, name)
            wrapped = self._noted(original, kind)
            self._saved.append((owner, name, original, wrapped, had))
            setattr(owner, name, wrapped)

    def _noted(self, original, kind: str):
        is_compiling = self._torch.compiler.is_compiling

        @functools.wraps(original)
        def noted(*args, **kwargs):
            if is_compiling() or self._inside or loop.tid != get_ident() or not loop.in_fwd or loop.evaluating:
                return original(*args, **kwargs)
            self._inside = True
            row = None
            try:
                row = self._note(kind, sys._getframe(1), args, kwargs)
            except Exception as error:
                swallow("attention", error)
            try:
                made = original(*args, **kwargs)
            finally:
                self._inside = False
            if row is not None and kind != "sdpa" and type(made) is self._torch.Tensor and made.grad_fn is not None:
                self._nodes.append((row, made.grad_fn))
            return made

        return noted

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """The graph is whole: weights that go elsewhere than into the product with the values are told apart."""
        users = weights.consumers([tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]) if self._nodes else {}
        for row, node in [pair for pair in self._nodes if pair[1] in users]:
            if weights.used_elsewhere(node, users, row[0] == "exp"):
                self._rows[row] -= 1
                used = (*row[:3], weights.USED)
                self._rows[used] = self._rows.get(used, 0) + 1
        self._nodes = [pair for pair in self._nodes if pair[1] not in users]

    def _note(self, kind: str, frame, args: tuple, kwargs: dict) -> tuple:
        names: list = []
        place = asker(frame, names.append)
        reason = "need_weights" if "multi_head_attention_forward" in names else ""
        if kind != "sdpa":
            shape = list((args[0] if args else kwargs["input"]).shape)
        else:
            shape, reason = _scores_and_reason(args, kwargs)
        key = (kind, None if place is None else tuple(place), tuple(shape), reason)
        self._rows[key] = self._rows.get(key, 0) + 1
        return key

    def end(self, step: int) -> None:
        """Put everything back, and write."""
        global showing
        showing = False
        loop.remove(self.on_backward)
        self._nodes = []
        for owner, name, original, wrapped, had in self._saved:
            if vars(owner).get(name) is not wrapped:
                continue  # somebody wrapped it after us
            if had:
                setattr(owner, name, original)
            else:
                delattr(owner, name)
        fact("attention_lines", step=step - 1, rows=[[*key, calls] for key, calls in self._rows.items() if calls])


def _scores_and_reason(args: tuple, kwargs: dict):
    _C = sys.modules["torch"]._C
    names = ("query", "key", "value", "attn_mask", "dropout_p")
    given = {**{names[index]: value for index, value in enumerate(args[: len(names)])}, **kwargs}
    query, key, value = given["query"], given["key"], given["value"]
    mask, dropout = given.get("attn_mask"), given.get("dropout_p") or 0.0
    shape = [*query.shape[:-1], key.shape[-2]]
    reasons = []
    if not (_C._get_flash_sdp_enabled() or _C._get_mem_efficient_sdp_enabled()):
        reasons.append("fused kernels are switched off")
    if query.dim() != 4:
        reasons.append(f"{query.dim()} dimensions, not 4")
    if mask is not None and mask.requires_grad:
        reasons.append("the mask needs a gradient")
    if query.device.type == "cpu" and dropout > 0:
        reasons.append("dropout on a CPU")
    if query.shape[-1] != value.shape[-1]:
        reasons.append("values have another head dimension than queries")
    if query.device.type == "cuda" and query.shape[-1] > 256:
        reasons.append(f"head dimension {query.shape[-1]}")
    if query.dtype.itemsize == 8 or not query.dtype.is_floating_point:
        reasons.append(f"dtype {str(query.dtype).replace('torch.', '')}")
    if given.get("enable_gqa") and query.device.type == "cpu":
        reasons.append("grouped heads")
    return shape, "; ".join(reasons)


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
