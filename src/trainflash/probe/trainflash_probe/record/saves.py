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
from .children import Children
from .others import Others, path_of
from .stored import Files


class Saves:
    """Wraps torch.save and torch.load. `saving(obj, target)` is told of saves on other threads, `write(line)` takes a line."""

    def __init__(self, torch, saving, write, updates, run_dir):
        self._saving, self._write, self._updates = saving, write, updates
        self._children = Children(updates, run_dir)
        self._files = Files(torch.load, write, run_dir, self._children)
        self._others = Others(self._written, run_dir)
        torch.save = torch.serialization.save = self._saver(torch.save)
        torch.load = torch.serialization.load = self._loader(torch.load)

    def finish(self):
        """Read back what has not been overwritten, by this process or its children, and name what nobody looked into."""
        for path, updates in self._children.saved().items():
            for made in updates[:-1]:  # overwritten since
                self._write({"k": "checkpoint", "n": made, "target": os.path.basename(path), "thread": "other"})
            self._files.saved(path, updates[-1], by_child=True)
        self._files.finish()
        for name in self._others.unknown(self._files.followed):
            self._write({"k": "written", "n": self._updates(), "target": name})

    def _saver(self, original):
        given = checkpoints.given_to(original)

        @functools.wraps(original)
        def save(*args, **kwargs):
            path = None
            try:
                obj, target = given(args, kwargs)
                path = path_of(target)
                if path is not None:
                    self._files.replaced(path, open_already=hasattr(target, "write"))
                if loop.started and loop.tid != get_ident():
                    self._saving(obj, target)
            except Exception as error:
                swallow("record of a save", error)
            result = original(*args, **kwargs)
            try:
                self._done(path)
            except Exception as error:
                swallow("record of a save", error)
            return result

        return save

    def _done(self, path):
        if path is None:
            return
        if self._children.here():
            self._children.tell(path)
        self._files.saved(path, self._updates())

    def _written(self, obj, target):
        if loop.tid == get_ident():
            loop.tell(loop.on_checkpoint, obj, target)
        else:
            self._saving(obj, target)

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


def live(parameters):
    """`{digest: data pointer}` of weights, to tell which saved tensors are the weights of this moment."""
    return {tensors.digest([parameter]): parameter.data_ptr() for parameter in parameters}
