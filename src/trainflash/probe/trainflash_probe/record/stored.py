"""The files that the program has saved, wherever it moves or copies them, read back before they are overwritten or when it ends.

While the program trains only what needs none of the owner's code is read (`weights_only`). A file whose classes would have to run, and
could draw random numbers or print, is copied aside and read when the program has ended.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil

from .. import imports
from ..guard import swallow
from ..patches import like
from . import contents

_READ_BYTES = 2 << 30
_COPIES_BYTES = 1 << 30  # of all files that are put aside
_LEAVE_FREE = 4  # times the size of a file that is put aside


class Files:
    """Follows saved files. `load` is the unwrapped torch.load, `write(line)` takes a line, copies lie in `run_dir` until they are read."""

    def __init__(self, load, write, run_dir, children):
        self._load, self._write, self._run_dir, self._children = load, write, run_dir, children
        self._saved: dict = {}  # path -> number of updates when it was saved
        self._aside: list = []  # (copy, what its line says)
        self._of_children: set = set()
        self.followed: set = set()
        self._copied = 0
        self._over = False
        self.reading = False
        for name, keeps in (("replace", False), ("rename", False), ("link", True)):
            if hasattr(os, name):
                imports.exchange(os, name, self._moving(getattr(os, name), keeps))
        imports.exchange(shutil, "copyfile", self._moving(shutil.copyfile, True))  # what shutil.move and the other copies use

    def saved(self, path, updates, by_child=False):
        """`path` was written after so many updates; what a child of this process has written nobody has seen before."""
        self._saved[path] = updates
        self.followed.add(path)
        if by_child:
            self._of_children.add(path)

    def replaced(self, path, open_already=False):
        """`path` is about to be overwritten: what lies there now is read. Of a file that is open for it already nothing is left."""
        updates = self._saved.pop(path, None)
        if updates is not None and not open_already and not self._children.here():
            self._look(path, {"k": "stored", "n": updates, "target": os.path.basename(path)})

    def finish(self):
        """Read what was put aside, and what is left."""
        self._over = True
        for copy, line in self._aside:
            self._look(copy, line)
            with contextlib.suppress(OSError):
                os.remove(copy)
        self._aside = []
        for path in self._of_children & set(self._saved):
            self._handed_by_child(path, self._saved[path])
        for path, updates in list(self._saved.items()):
            self._look(path, {"k": "stored", "n": updates, "target": os.path.basename(path), "left": True})
        self._saved = {}

    def _handed_by_child(self, path, updates):
        """What a child was handed is what it has written, if that can be read."""
        found: dict = {}
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            if os.path.getsize(path) <= _READ_BYTES:
                self.reading = True
                found = contents.checkpoint(self._load(path, map_location="cpu", weights_only=False), {})
        self.reading = False
        self._write({"k": "checkpoint", "n": updates, "target": os.path.basename(path), "thread": "other", **found})

    def _moving(self, original, keeps):
        """`original(src, dst)`, followed; with `keeps` the old path stays."""

        @like(original)
        def move(src, dst, *args, **kwargs):
            moved = {}
            try:
                moved = self._below(src, dst)
                for new in moved.values():
                    self.replaced(new)
            except Exception as error:
                swallow("record of a move", error)
            result = original(src, dst, *args, **kwargs)
            for old, new in moved.items():
                if old in self._saved:
                    self._saved[new] = self._saved[old] if keeps else self._saved.pop(old)
                    self.followed.add(new)
                    self._told(old, new)
            return result

        return move

    def _told(self, old, new):
        if self._children.here():
            try:
                self._children.tell(new, old)
            except Exception as error:
                swallow("record of a move", error)

    def _below(self, src, dst):
        """Saved files that move with `src`, which may be a folder: old path -> new path."""
        if not self._saved:
            return {}
        old, new = (os.path.abspath(os.fsdecode(path)) for path in (src, dst))
        if old in self._saved:
            return {old: new}
        if new in self._saved:  # something else takes its place
            self.replaced(new)
        inside = os.path.join(old, "")
        return {path: os.path.join(new, path[len(inside) :]) for path in self._saved if path.startswith(inside)}

    def _look(self, path, line):
        if self.reading:
            return
        self.reading = True
        try:
            self._write({**line, **self._seen(path, line)})
        except _PutAside:
            return
        finally:
            self.reading = False

    def _seen(self, path, line):
        """What a line says of the file: its contents, that it is gone, that it cannot be read, or that it was not looked at."""
        try:
            size = os.path.getsize(path)
        except OSError:
            return {"gone": True}
        if size > _READ_BYTES:
            return {"unread": f"{size >> 20} MiB"}
        try:
            found = self._load(path, map_location="cpu", weights_only=True)
        except Exception:
            if not self._over:
                return self._put_aside(path, size, line)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    found = self._load(path, map_location="cpu", weights_only=False)
            except Exception as error:
                return {"unreadable": type(error).__name__}
        seen = contents.checkpoint(found, {})
        return {key: seen[key] for key in ("keys", "digest", "scalars")}

    def _put_aside(self, path, size, line):
        try:
            if self._copied + size > _COPIES_BYTES or shutil.disk_usage(self._run_dir).free < _LEAVE_FREE * size:
                return {"unread": "its classes can be read only when the program has ended"}
            copy = os.path.join(self._run_dir, f"saved-{os.getpid()}-{len(self._aside)}")
            with open(path, "rb") as source, open(copy, "wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            return {"unread": type(error).__name__}
        self._copied += size
        self._aside.append((copy, line))
        raise _PutAside


class _PutAside(Exception):
    """Read later."""
