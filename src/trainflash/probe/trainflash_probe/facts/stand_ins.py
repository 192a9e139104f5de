"""What the owner's modules see of torch for the length of a window: modules that look like torch's, with some functions wrapped.

Nobody else sees them. Libraries compare functions of torch by identity (Lightning does: a reduction `is torch.mean`), so torch itself may
not be touched, not even for a moment.
"""

from __future__ import annotations

import sys
import types

from .. import own

_SELF = ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__path__")


class _StandIn(types.ModuleType):
    """A module with `other` in place of some of its attributes; whatever is set goes to the module itself."""

    def __init__(self, module, other: dict) -> None:
        own_names = {name: vars(module)[name] for name in _SELF if name in vars(module)}
        vars(self).update(own_names, **other, _trainflash_module=module)

    def __getattr__(self, name: str):
        return getattr(vars(self)["_trainflash_module"], name)

    def __setattr__(self, name: str, value: object) -> None:
        vars(self).pop(name, None)
        setattr(vars(self)["_trainflash_module"], name, value)

    def __delattr__(self, name: str) -> None:
        vars(self).pop(name, None)
        delattr(vars(self)["_trainflash_module"], name)

    def __dir__(self):
        return dir(vars(self)["_trainflash_module"])

    def __reduce__(self):
        return __import__, (vars(self)["_trainflash_module"].__name__,)


class StandIns:
    """Stand-ins for torch and the modules in it that `wrapped` names, put into the owner's modules and taken out again.

    `wrapped`: module -> {name: function in place of the module's own}.
    """

    def __init__(self, torch, wrapped: dict) -> None:
        made: dict = {}
        functional = torch.nn.functional
        made[functional] = _StandIn(functional, wrapped.get(functional, {}))
        made[torch.nn] = _StandIn(torch.nn, {"functional": made[functional]})
        others = [module for module in wrapped if module not in (torch, functional)]
        made |= {module: _StandIn(module, wrapped[module]) for module in others}
        parts = {module.__name__.rpartition(".")[2]: made[module] for module in others}
        made[torch] = _StandIn(torch, {**wrapped.get(torch, {}), "nn": made[torch.nn], **parts})
        self._modules = {id(module): stand_in for module, stand_in in made.items()}
        self._functions = {id(vars(module)[name]): function for module, names in wrapped.items() for name, function in names.items()}
        self._placed: list = []  # (namespace, name, what was there, what stands there)

    def place(self) -> None:
        """Put them into the namespaces of the owner's modules."""
        for module in list(sys.modules.values()):
            if not isinstance(module, types.ModuleType) or not _is_own(module):
                continue
            for name, value in list(vars(module).items()):
                other = self._modules.get(id(value)) or self._functions.get(id(value))
                if other is not None:
                    self._placed.append((vars(module), name, value, other))
                    vars(module)[name] = other

    def take_out(self) -> None:
        """Put back what was there, where nobody has put something else."""
        for namespace, name, was, other in self._placed:
            if namespace.get(name) is other:
                namespace[name] = was
        self._placed = []


def _is_own(module) -> bool:
    file = vars(module).get("__file__")
    return isinstance(file, str) and own.inside(file) is not None
