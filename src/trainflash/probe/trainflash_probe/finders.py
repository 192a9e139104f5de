"""How the probe enters: a finder waits for torch, installs the probe once torch has run, and gives its place to the one of `imports`."""

from __future__ import annotations

import sys

from .guard import swallow
from .imports import Watcher, spec_from_others, wrap_loader


def first_torch_spec(stub, name: str, path, target):
    """torch's spec, with a loader that installs the probe once torch has run; the stub finder stays until then."""
    spec = spec_from_others(stub, name, path, target)
    if spec is not None and hasattr(spec.loader, "exec_module"):
        wrap_loader(name, spec, lambda module: _torch_is_there(stub, module))
    return spec


def _torch_is_there(stub, torch) -> None:
    if stub not in sys.meta_path:
        return
    sys.meta_path[sys.meta_path.index(stub)] = Watcher
    from . import boot  # a program that only looks for torch pays for nothing

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
