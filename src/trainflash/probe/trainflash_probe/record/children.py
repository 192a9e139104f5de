"""What child processes of the training process save: they note the path, and the training process reads the file when it ends.

A forked child must not compute with torch: threads that it does not have would be waited for. So it writes one line and nothing else.
"""

from __future__ import annotations

import json
import os
import sys

from .. import process
from ..phases.loop import loop

_WAIT_S = 20.0  # for each child at the end; the interpreter itself would wait for it too


class Children:
    """Kept by every process. `updates()` is how many this one has made."""

    def __init__(self, updates, run_dir):
        self._updates, self._run_dir = updates, run_dir
        self._asked = False
        self._parent: tuple = ()  # (process id, updates) of the training process that forked this one
        os.register_at_fork(after_in_child=self._forked)

    def here(self):
        """Whether this process is a child that does not train, a loader's worker too."""
        if not self._parent and not self._asked and not loop.started:
            self._asked, self._parent = True, self._spawned_by()
        return bool(self._parent) and not loop.started

    def tell(self, path, before=None):
        """Note that this child has saved `path`, or moved there what it had saved as `before`."""
        if process.role != "worker":
            line = {"n": self._parent[1], "path": path, "before": before}
            with open(self._name("saves", self._parent[0]), "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def saved(self):
        """`{path: updates, each time}` of all that children of this process have saved, when they have ended."""
        multiprocessing = sys.modules.get("multiprocessing")
        for child in multiprocessing.active_children() if multiprocessing is not None and self._updates() else ():
            if not child.daemon:
                child.join(_WAIT_S)
        try:
            with open(self._name("saves", os.getpid()), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        except (OSError, ValueError):
            return {}
        found: dict = {}
        for line in lines:
            made = found.pop(line["before"], [line["n"]]) if line["before"] else [line["n"]]
            found.setdefault(line["path"], []).extend(made)
        return found

    def _forked(self):
        if loop.started or self._updates():
            self._parent = (os.getppid(), self._updates())

    def _spawned_by(self):
        """The training process that started this one anew, by its record."""
        try:
            with open(self._name("training", os.getppid()), "rb") as file:
                made = sum(b'"k":"update"' in line for line in file)
        except OSError:
            return ()
        return (os.getppid(), made) if made else ()

    def _name(self, kind, pid):
        return os.path.join(self._run_dir, f"{kind}-{pid}.jsonl")
