"""Runs our hooks right after a module of the program's was imported; imports none itself."""

from __future__ import annotations

import sys

from .guard import swallow

_callbacks: dict = {}  # module name -> callables that take the module


def after(name: str, callback) -> None:
    """Call `callback(module)` when `name` was imported, at once if it is there already."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _run(name, callback, module)
    else:
        _callbacks.setdefault(name, []).append(callback)


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
    """The finder that waits for the modules that have callbacks."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _callbacks:
            return None
        spec = spec_from_others(Watcher, name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            wrap_loader(name, spec, lambda module: [_run(name, callback, module) for callback in _callbacks.pop(name, ())])
        return spec
