"""What torch.compile does, from torch's own callbacks and counters. Imports nothing: only a program that uses Dynamo is watched."""

from __future__ import annotations

import collections
import functools
import os
import sys
import time

from .. import imports, own
from ..guard import swallow
from ..phases import compiled
from ..writer import fact

MAX_SPANS = 2000
MAX_REASONS = 200
MAX_ASKED = 16

_clock = time.monotonic_ns


class Compiles:
    """Spans of compilations (CLOCK_MONOTONIC), and by newest write what torch counted."""

    def __init__(self) -> None:
        self.spans: list = []  # [begin, ns]
        self.limit_hit = False
        self.called = False  # torch.compile was called
        self.asked_at: set = set()  # the owner's lines that called it
        self._began = 0
        self._depth = 0
        self._newest = None  # torch's newest record when it was last asked
        self._reasons: collections.Counter = collections.Counter()
        self._older: collections.Counter = collections.Counter()
        self._again: collections.Counter = collections.Counter()  # place of a function compiled again -> times

    # --- hooks

    def begins(self, *_) -> None:
        """Torch's callback; older versions call it for each nested compilation too."""
        self._depth += 1
        if self._depth == 1:
            self._began = _clock()

    def ended(self, *_) -> None:
        """Torch's callback."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._began and len(self.spans) < MAX_SPANS:
            self.spans.append([self._began, _clock() - self._began])
            self._began = 0

    def asked(self) -> None:
        """The program calls torch.compile."""
        self.called = True
        place = own.caller()
        if place is not None and len(self.asked_at) < MAX_ASKED:
            self.asked_at.add(tuple(place))

    def limited(self, original):
        """Torch's own test of whether a function has been compiled too often."""

        @functools.wraps(original)
        def exceeds(*args, **kwargs):
            result = original(*args, **kwargs)
            if result[0] if isinstance(result, tuple) else result:
                self.limit_hit = True
            return result

        return exceeds

    @property
    def compiling(self) -> bool:
        """True while torch compiles."""
        return self._depth > 0

    @property
    def used(self) -> bool:
        """True when the program compiles something, or said that it will."""
        return self.called or bool(self.spans) or self._counter("frames", "total") > 0

    def _counter(self, group: str, name: str = "") -> int:
        utils = sys.modules.get("torch._dynamo.utils")
        counts = getattr(utils, "counters", {}).get(group) or {}
        return counts.get(name, 0) if name else sum(counts.values())

    # --- facts

    def write(self) -> None:
        """Cumulative figures; nothing where nothing was compiled."""
        frames = self._counter("frames", "ok")
        if not self.spans and not frames:
            return
        try:
            self._read_metrics()
        except Exception as error:
            swallow("compile metrics", error)
        again = [place for place, _ in self._again.most_common()]
        place = next(iter(self.asked_at if len(self.asked_at) == 1 else again), None)
        fact(
            "compile",
            t=_clock(),
            spans=self.spans,
            frames=frames,
            graph_breaks=self._counter("graph_break"),
            reasons=(self._reasons or self._older).most_common(20),
            limit_hit=self.limit_hit,
            at=None if place is None else list(place),
        )

    def _read_metrics(self) -> None:
        utils = sys.modules.get("torch._dynamo.utils")
        recorded = getattr(utils, "_compilation_metrics", None) or ()  # the newest ones only: a bounded queue
        fresh = []
        for record in reversed(recorded):
            if record is self._newest:
                break
            fresh.append(record)
        for record in reversed(fresh):
            self._newest = record
            self._note(record)
        if not self._reasons:  # older torch keeps them here
            failures = getattr(utils, "guard_failures", {})
            self._older = collections.Counter(_short(reason) for reasons in failures.values() for reason in reasons)

    def _note(self, record) -> None:
        if getattr(record, "is_forward", True) is False:
            return
        reason = getattr(record, "recompile_reason", None)
        if reason and len(self._reasons) < MAX_REASONS:
            self._reasons[_short(reason)] += 1
        name, line = getattr(record, "co_filename", None), getattr(record, "co_firstlineno", None)
        if name and line and (reason or getattr(record, "cache_size", 0)) and own.is_own(compile("", name, "exec")):
            self._again[(os.path.abspath(name), int(line), str(getattr(record, "co_name", "")))] += 1


def _short(reason: object) -> str:
    """Without the stack trace and the source line that newer torch adds."""
    return " ".join(str(reason).splitlines()[0].partition("  # ")[0].split())[:300]


source = Compiles()


def install(torch) -> Compiles:
    """Wait for the parts of Dynamo that are listened to."""
    compiled.on_call.append(source.asked)

    def listen(module) -> None:
        handler = module.callback_handler
        handler.register_start_callback(source.begins)
        handler.register_end_callback(source.ended)

    def limit(module) -> None:
        for name in ("exceeds_recompile_limit", "exceeds_cache_size_limit"):
            if hasattr(module, name):
                setattr(module, name, source.limited(getattr(module, name)))

    imports.after("torch._dynamo.callback", listen)
    imports.after("torch._dynamo.convert_frame", limit)
    return source
