"""What the owner's modules see of torch for the length of a window: modules that look like torch's, with some functions wrapped.

Nobody else sees them. Libraries compare functions of torch by identity (Lightning does: a reduction `is torch.mean`), so torch itself may
not be touched, not even for a moment.
"""

from __future__ import annotations

import importlib
import types

from . import value_uses

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
        return importlib.import_module, (vars(self)["_trainflash_module"].__name__,)


class StandIns:
    """Stand-ins for torch and the modules in it that `wrapped` names, put into the owner's modules and taken out again.

    `wrapped`: module -> {name: function in place of the module's own}. What the owner's code handles as a value is left alone everywhere.
    """

    def __init__(self, torch, wrapped: dict) -> None:
        self._torch, self._wrapped = torch, wrapped
        self._originals: dict = {}  # id of what stands in -> (it, what it stands for)
        self._placed: list = []  # (namespace, name, what was there, what stands there)

    def place(self) -> None:
        """Put them into the namespaces of the owner's modules."""
        program = value_uses.of_program()
        values = set().union(*[uses.attributes for _, uses in program])
        asked = values.union(*[uses.inner for _, uses in program])
        modules, functions = self._made(values, asked)
        self._originals = {id(other): (other, was) for each in (modules, functions) for was, other in each.values()}
        for namespace, uses in program:
            if uses.dynamic:
                continue
            for name, value in list(namespace.items()):
                was, other = modules.get(id(value)) or (None, None)
                if other is not None and (name in uses.names or name in values):
                    continue
                if other is None and name not in uses.names and name not in uses.bases and name not in asked:
                    was, other = functions.get(id(value)) or (None, None)
                if other is not None:
                    self._placed.append((namespace, name, was, other))
                    namespace[name] = other

    def _made(self, values: set, asked: set) -> tuple:
        """{id: (module, its stand-in)} and {id: (function, its wrapper)}."""
        torch = self._torch
        wrapped = {module: {name: each for name, each in names.items() if name not in asked} for module, names in self._wrapped.items()}
        made: dict = {}
        functional = torch.nn.functional
        made[functional] = _StandIn(functional, wrapped.get(functional, {}))
        made[torch.nn] = _StandIn(torch.nn, {} if "functional" in values else {"functional": made[functional]})
        others = [module for module in wrapped if module not in (torch, functional)]
        made.update({module: _StandIn(module, wrapped[module]) for module in others})
        parts = {module.__name__.rpartition(".")[2]: made[module] for module in (torch.nn, *others)}
        parts = {name: part for name, part in parts.items() if name not in values}
        made[torch] = _StandIn(torch, {**wrapped.get(torch, {}), **parts})
        modules = {id(module): (module, stand_in) for module, stand_in in made.items()}
        originals = {module: vars(module) for module in self._wrapped}
        functions = {
            id(originals[module][name]): (originals[module][name], function)
            for module, names in self._wrapped.items()
            for name, function in names.items()
        }
        return modules, functions

    def take_out(self) -> None:
        """Put back what was there, where nobody has put something else; what was imported meanwhile from such a place too."""
        for namespace, name, was, other in self._placed:
            if namespace.get(name) is other:
                namespace[name] = was
        self._placed = []
        for namespace, _ in value_uses.of_program():
            for name, value in list(namespace.items()):
                if id(value) in self._originals:
                    namespace[name] = self._originals[id(value)][1]
        self._originals = {}
