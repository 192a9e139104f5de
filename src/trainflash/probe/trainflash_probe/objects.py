"""What the program's objects hold, read by ways that run none of its code.

An object may answer each question with code of its own: `isinstance` asks `__class__`, `getattr` asks properties, and a mapping may
make what it is asked for anew, with random numbers. So a class is asked by `type`, and what an object holds is read where the
interpreter keeps it.
"""

from __future__ import annotations

import functools
import sys
from collections import UserDict
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType

from . import own
from .own import code_of

MOST = 32  # entries of one value

_is_kind = type.__subclasscheck__  # of two classes, whatever their metaclasses say
_line_of = type.__dict__["__mro__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__
_AS_STORED = (GetSetDescriptorType, MemberDescriptorType)
_KEYS = (str, int, bool)
# Containers of libraries that keep what they hold in one attribute; the first package's is the interpreter's own.
_INSIDE = {"torch_geometric": ("_store", "_mapping"), "tensordict": ("_tensordict",)}


def is_a(value: object, *kinds) -> bool:
    """`isinstance`, by the true class alone."""
    own_kind = type(value)
    return any([_is_kind(kind, own_kind) for kind in kinds])


def attributes_of(value: object) -> dict:
    """The attributes that are stored in an object itself; those of slots too."""
    found: dict = {}
    for kind in _line_of(type(value)):
        names = _namespace_of(kind)
        stored = names.get("__dict__")
        if type(stored) in _AS_STORED:
            held = stored.__get__(value)
            return {**found, **held} if found else held
        slots = names.get("__slots__")
        for name in slots if type(slots) in (tuple, list) else ():
            slot = names.get(name)
            if type(slot) is MemberDescriptorType:
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:  # never set
                    continue
    return found


def of_class(kind: type, name: str):
    """What a class or one of its bases holds under a name, as it stands there: a function, a property; None without one."""
    for each in _line_of(kind):
        names = _namespace_of(each)
        if name in names:
            return names[name]
    return None


def attribute(value: object, name: str, otherwise=None):
    """An attribute that is stored in the object or its class. Properties are asked where a library wrote them."""
    stored = attributes_of(value)
    if name in stored:
        return stored[name]
    found = of_class(type(value), name)
    if found is None:
        return otherwise
    if type(found) is property:
        return otherwise if is_owners(found.fget) else getattr(value, name, otherwise)
    return otherwise if of_class(type(found), "__get__") is not None else found


def is_owners(function: object) -> bool:
    """Whether calling it runs code of the owner's, or nobody knows."""
    code = code_of(function)
    return own.is_own(code) if code is not None else type(function).__module__ != "builtins"


def place_of_own(call, deeper: int = 1) -> list:
    """[file, first line, qualified name] of the owner's code that calling `call` runs; None for what is all of libraries.

    Functions, methods, partials, objects with `__call__`, and a library's object or function around one of these.
    """
    stored = attributes_of(call)
    inner = call.func if is_a(call, functools.partial) else stored.get("func")
    for function in (call, inner, stored.get("__wrapped__"), of_class(type(call), "__call__")):
        code = code_of(function)
        if code is not None and own.is_own(code):
            return own.place_of_code(code)
    parts = [part for part in stored.values() if of_class(type(part), "__call__") is not None and not is_a(part, type)] if deeper else ()
    found = (place_of_own(part, deeper - 1) for part in parts)
    return next((place for place in found if place is not None), None)


def modules_of_program() -> list:
    """The namespaces of all modules that are there; asking a module for an attribute may load one that was put off."""
    return [attributes_of(module) for module in list(sys.modules.values()) if is_a(module, ModuleType)]


def tensor_class():
    """torch's, as the program imported it."""
    return sys.modules["torch"].Tensor


def is_tensor(value: object) -> bool:
    """A tensor, or an object of a subclass."""
    return _is_kind(tensor_class(), type(value))


def is_array(value: object) -> bool:
    """An array of NumPy's."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and _is_kind(numpy.ndarray, type(value))


def held_in(value: object, most: int = MOST):
    """[(name, what it holds)] of a container that is known: tuples, lists, mappings, dataclasses and what libraries make batches of.

    None for anything else, a mapping of the owner's own for one. Names are "" where a place has none; keys that are objects have none.
    """
    kind = type(value)
    if _is_kind(tuple, kind):
        items = tuple.__getitem__(value, slice(0, most))
        names = of_class(kind, "_fields")
        named = type(names) is tuple and len(names) >= len(items)
        return [(names[at] if named and type(names[at]) is str else "", item) for at, item in enumerate(items)]
    if _is_kind(list, kind):
        return [("", item) for item in list.__getitem__(value, slice(0, most))]
    inner = _inside(value, kind)
    if inner is not None:
        return [(str(key) if type(key) in _KEYS else "", item) for key, item in list(dict.items(inner))[:most]]
    fields = of_class(kind, "__dataclass_fields__")
    if type(fields) is dict:
        stored = attributes_of(value)
        return [(name, stored[name]) for name in list(fields)[:most] if name in stored]
    return None


def _inside(value: object, kind: type):
    """The dict that a mapping is, or keeps its entries in; None where that is not known."""
    if _is_kind(dict, kind):
        return value
    names = ("data",) if _is_kind(UserDict, kind) else _names_inside(kind)
    for name in names:
        value = attributes_of(value).get(name)
        if value is None:
            return None
    return value if names and is_a(value, dict) else None


def _names_inside(kind: type) -> tuple:
    for each in _line_of(kind):
        module = _namespace_of(each).get("__module__")
        found = _INSIDE.get(module.partition(".")[0]) if type(module) is str else None
        if found is not None:
            return found
    return ()
