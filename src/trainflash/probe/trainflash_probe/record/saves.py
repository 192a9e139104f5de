"""What is saved, by whatever thread, what then lies on disk, and what the program loads again.

A checkpoint is seen three times: the object as it is handed to `torch.save`, the same moment's live weights, and the file, read back
before it is overwritten or when the program ends. A copy that shares memory with the weights in training, or that another thread
writes while they change, differs between them.
"""

from __future__ import annotations

import functools
import os
from threading import get_ident

from .. import imports
from ..guard import swallow
from ..phases.loop import loop
from . import state, tensors

_READ_BACK_BYTES = 2 << 30


class Saves:
    """Wraps torch.save and torch.load. `saving(obj, target)` is told of saves on other threads, `write(line)` takes a line."""

    def __init__(self, torch, saving, write, updates):
        self._saving, self._write, self._updates = saving, write, updates
        self._load = torch.load
        self._files: dict = {}  # path -> number of updates when it was saved
        self._busy = False
        torch.save = torch.serialization.save = self._saver(torch.save)
        torch.load = torch.serialization.load = self._loader(torch.load)
        for name in ("replace", "rename"):
            imports.exchange(os, name, self._moved(getattr(os, name)))

    def finish(self):
        """Read back what has not been overwritten."""
        for path in list(self._files):
            self._read_back(path)

    def _saver(self, original):
        @functools.wraps(original)
        def save(*args, **kwargs):
            path = None
            try:
                target = kwargs.get("f", args[1] if len(args) > 1 else None)
                path = os.path.abspath(os.fspath(target)) if isinstance(target, (str, os.PathLike)) else None
                if path is not None:
                    self._read_back(path)
                if loop.started and loop.tid != get_ident():
                    self._saving(args[0] if args else kwargs.get("obj"), target)
            except Exception as error:
                swallow("record of a save", error)
            result = original(*args, **kwargs)
            if path is not None:
                self._files[path] = self._updates()
            return result

        return save

    def _loader(self, original):
        @functools.wraps(original)
        def load(*args, **kwargs):
            result = original(*args, **kwargs)
            if not self._busy:
                target = args[0] if args else kwargs.get("f")
                name = os.path.basename(os.fspath(target)) if isinstance(target, (str, os.PathLike)) else ""
                self._write({"k": "load", "n": self._updates(), "target": name})
            return result

        return load

    def _moved(self, original):
        @functools.wraps(original)
        def move(src, dst, *args, **kwargs):
            try:
                old, new = (os.path.abspath(os.fspath(path)) for path in (src, dst))
                if old in self._files:
                    self._read_back(new)
            except Exception as error:
                swallow("record of a move", error)
                old = new = None
            result = original(src, dst, *args, **kwargs)
            if old in self._files:
                self._files[new] = self._files.pop(old)
            return result

        return move

    def _read_back(self, path):
        updates = self._files.pop(path, None)
        if updates is None or self._busy:
            return
        self._busy = True
        try:
            if os.path.getsize(path) <= _READ_BACK_BYTES:
                found = self._load(path, map_location="cpu", weights_only=False)
                self._write({"k": "stored", "n": updates, "target": os.path.basename(path), **_contents(found)})
        except Exception as error:
            self._write({"k": "stored", "n": updates, "target": os.path.basename(path), "unreadable": type(error).__name__})
        finally:
            self._busy = False


def _contents(found):
    seen = state.checkpoint(found, {})
    return {key: seen[key] for key in ("keys", "digest", "scalars")}


def live(parameters):
    """`{digest: data pointer}` of weights, to tell which saved tensors are the weights of this moment."""
    return {tensors.digest([parameter]): parameter.data_ptr() for parameter in parameters}
