"""What is saved, by whatever thread, what then lies on disk, and what the program loads again.

A checkpoint is seen three times: the object as it is handed to `torch.save`, the same moment's live weights, and the file, read back
(`stored`). A copy that shares memory with the weights in training, or that another thread writes while they change, differs between them.
"""

from __future__ import annotations

import functools
import os
from threading import get_ident

from ..guard import swallow
from ..phases import checkpoints
from ..phases.loop import loop
from . import tensors
from .stored import Files


class Saves:
    """Wraps torch.save and torch.load. `saving(obj, target)` is told of saves on other threads, `write(line)` takes a line."""

    def __init__(self, torch, saving, write, updates, run_dir):
        self._saving, self._write, self._updates = saving, write, updates
        self._files = Files(torch.load, write, run_dir)
        torch.save = torch.serialization.save = self._saver(torch.save)
        torch.load = torch.serialization.load = self._loader(torch.load)

    def finish(self):
        """Read back what has not been overwritten."""
        self._files.finish()

    def _saver(self, original):
        given = checkpoints.given_to(original)

        @functools.wraps(original)
        def save(*args, **kwargs):
            path = None
            try:
                obj, target = given(args, kwargs)
                path = _path_of(target)
                if path is not None:
                    self._files.replaced(path, open_already=hasattr(target, "write"))
                if loop.started and loop.tid != get_ident():
                    self._saving(obj, target)
            except Exception as error:
                swallow("record of a save", error)
            result = original(*args, **kwargs)
            if path is not None:
                self._files.saved(path, self._updates())
            return result

        return save

    def _loader(self, original):
        @functools.wraps(original)
        def load(*args, **kwargs):
            result = original(*args, **kwargs)
            try:
                if not self._files.reading:
                    target = args[0] if args else kwargs.get("f")
                    name = os.path.basename(os.fsdecode(target)) if isinstance(target, (str, bytes, os.PathLike)) else ""
                    self._write({"k": "load", "n": self._updates(), "target": name})
            except Exception as error:
                swallow("record of a load", error)
            return result

        return load


def _path_of(target):
    """The file that is written, by its path or as an open file; None for what lies in memory."""
    named = getattr(target, "name", None) if hasattr(target, "write") else target
    return os.path.abspath(os.fsdecode(named)) if isinstance(named, (str, bytes, os.PathLike)) else None


def live(parameters):
    """`{digest: data pointer}` of weights, to tell which saved tensors are the weights of this moment."""
    return {tensors.digest([parameter]): parameter.data_ptr() for parameter in parameters}
