"""Runs our hooks right after a module of the program's was imported; imports none itself."""

from __future__ import annotations

import sys

from .guard import swallow

_callbacks: dict = {}  # module name -> callables that take the module
_begun: set = set()  # of them those whose import had begun before, such as a library's that imports torch


def after(name: str, callback) -> None:
    """Call `callback(module)` when `name` was imported, at once if it is there already."""
    module = sys.modules.get(name)
    if module is not None and not _initializing(module):
        _run(name, callback, module)
    else:
        _callbacks.setdefault(name, []).append(callback)
        if module is not None:
            _begun.add(name)


def _initializing(module) -> bool:
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _run_begun() -> None:
    """Of the imports that had begun before, those that are over by now."""
    for name in list(_begun):
        module = sys.modules.get(name)
        if module is None or not _initializing(module):
            _begun.discard(name)
            if module is not None:
                _run_all(name, module)


def _run_all(name: str, module) -> None:
    for callback in _callbacks.pop(name, ()):
        _run(name, callback, module)


def _run(name: str, callback, module) -> None:
    try:
        callback(module)
    except Exception as error:
        swallow(f"hook of {name}", error)


def exchange(owner: object, name: str, value: object) -> None:
    """`owner.name = value`, and the same in the module where pickle would look for what stood there."""
    original = getattr(owner, name)
    home = sys.modules.get(getattr(original, "__module__", None) or "")
    setattr(owner, name, value)
    if home is not None and getattr(home, name, None) is original:
        setattr(home, name, value)


def wrap_loader(name: str, spec, done) -> None:
    """Call `done(module)` right after `spec` was executed."""
    loader = spec.loader
    original = loader.exec_module

    def exec_module(module):
        original(module)
        try:
            done(module)
        except Exception as error:
            swallow(f"import of {name}", error)

    loader.exec_module = exec_module


def spec_from_others(mine, name: str, path, target):
    """What the finders beside `mine` find; None: nothing."""
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is mine or find is None:
            continue
        spec = find(name, path, target)
        if spec is not None:
            return spec
    return None


class Watcher:
    """The finder that waits for the modules that have callbacks; for one whose import had begun, any later import tells that it is over."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if _begun:
            _run_begun()
        if name not in _callbacks:
            return None
        spec = spec_from_others(Watcher, name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            wrap_loader(name, spec, lambda module: _run_all(name, module))
        return spec
