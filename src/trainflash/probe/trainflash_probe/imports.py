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


def _wrap_loader(name: str, spec, done) -> None:
    loader = spec.loader
    original = loader.exec_module

    def exec_module(module):
        original(module)
        try:
            done(module)
        except Exception as error:
            swallow(f"import of {name}", error)

    loader.exec_module = exec_module


def _spec_from_others(mine, name: str, path, target):
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is mine or find is None:
            continue
        spec = find(name, path, target)
        if spec is not None:
            return spec
    return None


def first_torch_spec(stub, name: str, path, target):
    """torch's spec, with a loader that installs the probe once torch has run; the stub finder stays until then."""
    spec = _spec_from_others(stub, name, path, target)
    if spec is not None and hasattr(spec.loader, "exec_module"):
        _wrap_loader(name, spec, lambda module: _torch_is_there(stub, module))
    return spec


def _torch_is_there(stub, torch) -> None:
    if stub not in sys.meta_path:
        return
    sys.meta_path[sys.meta_path.index(stub)] = _Watcher
    from . import boot

    boot.install(torch)


def enter() -> None:
    """Wait for torch, as `sitecustomize` would have done; where it is there already, install now."""
    torch = sys.modules.get("torch")
    try:
        sys.meta_path.insert(0, _ByHand)
        if torch is not None:
            _torch_is_there(_ByHand, torch)
    except Exception as error:
        swallow("enter", error)


class _ByHand:
    """The finder that waits for torch where the program let the probe in itself."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return first_torch_spec(_ByHand, name, path, target) if name == "torch" else None


class _Watcher:
    """The finder that takes the stub's place."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _callbacks:
            return None
        spec = _spec_from_others(_Watcher, name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _wrap_loader(name, spec, lambda module: [_run(name, callback, module) for callback in _callbacks.pop(name, ())])
        return spec
