"""How long a data set is, without asking it: `__len__` of the owner's may count, print, load or draw.

Of a class of the owner's the code of `__len__` is read: `return len(self.items) // 2` says it all. What calls anything but `len`, `int`,
`min` and `max` says nothing. Libraries are asked.
"""

from __future__ import annotations

import dis
from collections import OrderedDict, deque

from . import own
from .objects import attributes_of, is_array, is_tensor, of_class
from .own import code_of
from .wrapped import is_torchs

MOST_STEPS = 40  # instructions
MOST_DEEP = 4  # data sets inside each other
_PLAIN = (list, tuple, dict, OrderedDict, deque, set, frozenset, str, bytes, bytearray, range)
_CALLED = {"len": len, "int": int, "min": min, "max": max}
_SKIPPED = frozenset(("RESUME", "NOP", "CACHE", "PRECALL", "PUSH_NULL", "KW_NAMES", "EXTENDED_ARG", "NOT_TAKEN"))
_SIGNS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
    "BINARY_ADD": lambda a, b: a + b, "BINARY_SUBTRACT": lambda a, b: a - b, "BINARY_MULTIPLY": lambda a, b: a * b,
    "BINARY_FLOOR_DIVIDE": lambda a, b: a // b,
}  # fmt: skip

_read: dict = {}  # id of a code object -> (it, its instructions or None)


class _Unknown(Exception):
    """Nobody can tell without running the owner's code."""


def length_of(value: object, deep: int = 0):
    """Number of items as the object stands now; None where it cannot be told."""
    try:
        return _length(value, deep)
    except Exception:  # a library that has no length, or an attribute that is not there yet
        return None


def _length(value: object, deep: int) -> int:
    if type(value) in _PLAIN:
        return len(value)
    method = of_class(type(value), "__len__")
    if method is None or deep > MOST_DEEP:
        raise _Unknown
    code = code_of(method)
    if is_torchs(value, "Subset"):
        return _length(attributes_of(value)["indices"], deep + 1)  # its own method would ask an owner's list
    if code is None or not own.is_own(code):
        return len(value)
    found = _run(_instructions(code), value, method.__globals__, deep)
    if type(found) is not int:
        raise _Unknown
    return found


def _instructions(code):
    known = _read.get(id(code))
    if known is None:
        listed = [each for each in dis.get_instructions(code) if each.opname not in _SKIPPED]
        known = _read[id(code)] = code, listed if len(listed) <= MOST_STEPS and code.co_argcount == 1 else None
    if known[1] is None:
        raise _Unknown
    return known[1]


def _run(steps: list, value: object, names: dict, deep: int):
    """What these instructions return: loads of what is stored, arithmetic of whole numbers, and a few built-in functions."""
    stack: list = []
    for step in steps:
        name = step.opname
        if name.startswith("LOAD_FAST"):
            stack.append(value)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            stack.append(step.argval)
        elif name == "LOAD_GLOBAL":
            stack.append(_global(step.argval, names))
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            stack.append(_attribute(stack.pop(), step.argval))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
            key = stack.pop()
            stack.append(_item(stack.pop(), key))
        elif name in ("BINARY_OP", *_SIGNS):
            right, left = stack.pop(), stack.pop()
            stack.append(_whole(left, right, step.argrepr if name == "BINARY_OP" else name))
        elif name in ("CALL", "CALL_FUNCTION", "CALL_METHOD"):
            given = [stack.pop() for _ in range(step.arg)][::-1]
            stack.append(_call(stack.pop(), given, deep))
        elif name == "RETURN_VALUE":
            return stack.pop()
        elif name == "RETURN_CONST":
            return step.argval
        else:
            raise _Unknown
    raise _Unknown


def _global(name: str, names: dict):
    if name in names:
        return names[name]
    if name in _CALLED:
        return _CALLED[name]
    raise _Unknown


def _attribute(value: object, name: str):
    if name == "shape" and (is_tensor(value) or is_array(value)):
        return tuple(value.shape)
    if name == "size" and is_tensor(value):
        return _Size(value.shape)
    stored = attributes_of(value)
    found = stored[name] if name in stored else of_class(type(value), name)
    if name not in stored and (found is None or of_class(type(found), "__get__") is not None):
        raise _Unknown
    return found


def _item(value: object, key: object):
    if type(value) in (list, tuple, dict, OrderedDict) and type(key) in (int, str):
        return value[key]
    raise _Unknown


def _whole(left: object, right: object, sign: str) -> int:
    if type(left) is not int or type(right) is not int or sign not in _SIGNS:
        raise _Unknown
    return _SIGNS[sign](left, right)


class _Size(tuple):
    """`tensor.size`, which is called with a dimension."""


def _call(function: object, given: list, deep: int):
    if type(function) is _Size and len(given) == 1 and type(given[0]) is int:
        return function[given[0]]
    if function is len and len(given) == 1:
        return _length(given[0], deep + 1)
    if any(function is each for each in (int, min, max)) and given and all(type(each) is int for each in given):
        return function(*given)
    raise _Unknown
