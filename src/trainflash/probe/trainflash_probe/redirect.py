"""Where no mount view stands in for the project: all that leads to the original by its path is led to the copy that the run works in.

Editable installs, `.pth` files, entries of `sys.path` and modules that are named by their file would bring the owner's code in place of
the candidate's. Ways of finding a module: a path of a folder (`_Hook`), a finder with paths of its own (`Redirect`), a file by name
(`spec_from_file_location`), the command line (the interpreter starts again with the copy's paths).
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from importlib import util

ORIGINAL = os.environ.get("TRAINFLASH_ORIGINAL", "")
COPY = os.environ.get("TRAINFLASH_COPY", "")
_ORDINARY = frozenset(("BuiltinImporter", "FrozenImporter", "PathFinder"))
_looking: set = set()  # (thread, module) that Redirect is asking the others for


def moved(path: str):
    """Where the copy has what `path` is in the original, be it there or not; None: not in the original, or the same file in both."""
    if not isinstance(path, str) or not path or _beneath(os.path.abspath(path), COPY):
        return None
    real = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(path))
    if not _beneath(real, ORIGINAL):
        real = os.path.realpath(path)
        if not _beneath(real, ORIGINAL):
            return None
    there = os.path.normpath(os.path.join(COPY, os.path.relpath(real, ORIGINAL)))
    folder = os.path.dirname(there)  # a whole folder of the original may be linked into the copy: an environment, much data
    return None if os.path.realpath(folder) == os.path.dirname(real) else there


def _beneath(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _hook(path):
    """A path hook: the finder for the copy's folder in place of that for the original's."""
    there = moved(path)
    if there is not None:
        for hook in sys.path_hooks:
            if hook is not _hook:
                try:
                    return hook(there)
                except ImportError:
                    continue
    raise ImportError


class Redirect:
    """The first finder: asks all others, and leads what they found in the original to the copy."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        key = (get_ident(), name)
        if key in _looking:
            return None
        _looking.add(key)
        try:
            return _led(name, path, target)
        finally:
            _looking.discard(key)


def _led(name, path, target):
    lacking = None
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is Redirect or find is None:
            continue
        spec = find(name, path, target)
        if spec is None:
            continue
        if getattr(finder, "__name__", "") in _ORDINARY:  # its folders are led by `_hook` already
            return spec
        led = _in_the_copy(spec)
        if led is not None:
            return led
        lacking = spec.origin
    if lacking:
        raise ModuleNotFoundError(f"No module named {name!r}: {lacking} is not in the sandbox", name=name)
    return None


def _in_the_copy(spec):
    """`spec` itself where it leads elsewhere; None where the copy has no such file."""
    places = spec.submodule_search_locations
    led = None if places is None else [moved(place) or place for place in places]
    there = moved(spec.origin) if spec.has_location else None
    if there is None:
        if led is not None and led != list(places):
            spec.submodule_search_locations = led
        return spec
    if not os.path.exists(there):
        return None
    return util.spec_from_file_location(spec.name, there, submodule_search_locations=led) or spec


def _leading(spec_from_file_location):
    def leading(name, location=None, **options):
        there = moved(os.fspath(location)) if isinstance(location, (str, os.PathLike)) else None
        loader = options.get("loader")
        if there is not None and hasattr(loader, "path"):
            loader.path = there
        return spec_from_file_location(name, location if there is None else there, **options)

    return leading


def _start_again() -> None:
    """Become the same interpreter with the copy's paths in the command line, where it has some of the original's."""
    with open("/proc/self/cmdline", "rb") as file:
        words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    led = [words[0], *map(_word, words[1:])]
    if led != words and sys.executable:
        os.execv(sys.executable, led)


def _word(word: str) -> str:
    name, equals, value = word.rpartition("=")
    if not os.path.isabs(value) or os.sep in name:
        return word
    there = moved(value)
    return word if there is None or not os.path.lexists(there) else f"{name}{equals}{there}"


def _refuse_what_is_there() -> None:
    """End the program where a module of the original runs already: a line of a `.pth` file imported it before we came."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        there = moved(path) if path else None
        if there is not None:
            mend = "take it out of the environment for this run, or run where a mount view is allowed (trainflash doctor)"
            said = f"trainflash: {name} was imported from the original project, {path}, before the sandbox could stand in for it; {mend}\n"
            os.write(2, said.encode("utf-8", "replace"))
            os._exit(125)


def install() -> None:
    """Lead all imports from here on. Raises what the interpreter raises where it is of another make."""
    _start_again()
    _refuse_what_is_there()
    sys.path_hooks.insert(0, _hook)
    for entry in [entry for entry in sys.path_importer_cache if moved(entry) is not None]:
        del sys.path_importer_cache[entry]
    sys.meta_path.insert(0, Redirect)
    util.spec_from_file_location = _leading(util.spec_from_file_location)
