"""What is saved by other means than torch.save: numpy, pickle and joblib, and files that the program writes by itself.

Arrays, tensors and modules with the shapes of the weights are a checkpoint, whoever writes them, and are compared as one. Of large files
that nobody looked into the names are noted.
"""

from __future__ import annotations

import functools
import os
import sys

from .. import imports
from ..facts import saved_state
from ..guard import swallow
from ..phases import checkpoints, own_updates
from ..phases.loop import loop

_WRITERS = {  # module -> its functions, with the places of the object and of the file
    "numpy": (("save", 1, 0, "arr", "file"), ("savez", None, 0, "", "file"), ("savez_compressed", None, 0, "", "file")),
    "pickle": (("dump", 0, 1, "obj", "file"),),
    "joblib": (("dump", 0, 1, "value", "filename"),),
    "cloudpickle": (("dump", 0, 1, "obj", "file"),),
    "dill": (("dump", 0, 1, "obj", "file"),),
    "safetensors.numpy": (("save_file", 0, 1, "tensor_dict", "filename"),),
}
_NO_STATE = (".png", ".jpg", ".jpeg", ".svg", ".pdf", ".gif", ".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".html", ".md", ".pyc")
_MOST_FILES = 2000


class Others:
    """Wraps the writers when the program imports them. `saving(obj, target)` is told of state that is written."""

    def __init__(self, saving, run_dir):
        self._saving, self._run_dir = saving, os.path.join(os.path.abspath(run_dir), "")
        self._known: set = set()  # files whose contents were seen
        self._opened: set = set()
        self._least = 0  # bytes of a file that may hold state
        for name, functions in _WRITERS.items():
            imports.after(name, lambda module, functions=functions: self._wrap(module, functions))
        sys.addaudithook(self._audit)

    def unknown(self, followed):
        """Names of the files about as large as the weights that were written while it trained, and that nobody looked into or followed."""
        left = sorted(
            path for path in self._opened - self._known - followed if not path.lower().endswith(_NO_STATE) and "tfevents" not in path
        )
        return [os.path.basename(path) for path in left if self._large(path)]

    def _large(self, path):
        return self._least and os.path.isfile(path) and os.path.getsize(path) >= self._least

    def _wrap(self, module, functions):
        for name, *places in functions:
            if callable(getattr(module, name, None)):
                imports.exchange(module, name, self._watching(getattr(module, name), *places))

    def _watching(self, original, place, target_place, word, target_word):
        @functools.wraps(original)
        def write(*args, **kwargs):
            if loop.started and not loop.in_ckpt:
                try:
                    target = args[target_place] if len(args) > target_place else kwargs.get(target_word)
                    if place is None:
                        named = {name: value for name, value in kwargs.items() if name != target_word}
                        obj = {**{f"arr_{index}": value for index, value in enumerate(args[1:])}, **named}
                    else:
                        obj = args[place] if len(args) > place else kwargs.get(word)
                    self._look(obj, target)
                except Exception as error:
                    swallow("record of a file", error)
            with checkpoints.one_save():  # tensors in a pickle are saved one by one
                return original(*args, **kwargs)

        return write

    def _look(self, obj, target):
        path = path_of(target)
        if path is not None:
            self._known.update((path, f"{path}.npy", f"{path}.npz"))
        if saved_state.holds_state(obj):
            self._saving(obj, target if path is None else path)

    def _audit(self, event, args):
        """Told by the interpreter of every file that is opened."""
        if event != "open" or not loop.started:
            return
        try:
            path, mode, flags = args
            writes = set(mode) & set("wax+") if isinstance(mode, str) else isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            if writes and isinstance(path, (str, bytes)) and len(self._opened) < _MOST_FILES:
                full = os.path.abspath(os.fsdecode(path))
                if not self._least:
                    size = sum(each.numel() for each in own_updates.parameters_of(loop.trained))
                    self._least = saved_state.LEAST_PART * saved_state.BYTES_EACH * size
                if not full.startswith((self._run_dir, "/dev/", "/proc/")):
                    self._opened.add(full)
        except Exception as error:
            swallow("audit", error)


def path_of(target):
    """The file that is written, by its path or as an open file; None for what lies in memory."""
    named = getattr(target, "name", None) if hasattr(target, "write") else target
    return os.path.abspath(os.fsdecode(named)) if isinstance(named, (str, bytes, os.PathLike)) else None
