"""Functions and methods of torch that are wrapped for one step."""

from __future__ import annotations

import functools
import sys
from threading import get_ident

from ..phases.loop import loop


class EntryPoints:
    """What was wrapped, and how to put everything back.

    Only the training thread is watched, outside of evaluations, of compilations and of watched calls themselves.
    """

    def __init__(self, torch) -> None:
        self._is_compiling = torch.compiler.is_compiling
        self._inside = False
        self._saved: list = []  # (owner, name, original, wrapped, whether the owner itself had it)

    def watch(self, owner: object, name: str, watched) -> None:
        """Have `watched(original, args, kwargs, caller)` run `owner.name`: `caller` is the frame that asks for it."""
        had, original = name in vars(owner), getattr(owner, name)

        @functools.wraps(original)
        def wrapped(*args, **kwargs):
            if self._inside or loop.tid != get_ident() or loop.evaluating or self._is_compiling():
                return original(*args, **kwargs)
            self._inside = True
            try:
                return watched(original, args, kwargs, sys._getframe(1))
            finally:
                self._inside = False

        self._saved.append((owner, name, original, wrapped, had))
        setattr(owner, name, wrapped)

    def restore(self) -> None:
        """Put everything back, but for what somebody else wrapped after us."""
        for owner, name, original, wrapped, had in self._saved:
            if vars(owner).get(name) is not wrapped:
                continue
            if had:
                setattr(owner, name, original)
            else:
                delattr(owner, name)
        self._saved.clear()
