"""Products of attention that are written as `torch.einsum`: which letters stand for the batch, for queries, keys and what is summed."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, string_value

NAME = "torch.einsum"
EQUATION = re.compile(r"(\.\.\.)?([A-Za-z]+),(\.\.\.)?([A-Za-z]+)->(\.\.\.)?([A-Za-z]+)")
ANY = "\u2026"  # stands for `...`, whatever lies in front
Turned = tuple[cst.BaseExpression, str]  # an operand, and the call that brings its dimensions into the kernel's order ("": they are)


def queries_and_keys(file: PythonFile, call: cst.Call) -> tuple[Turned, Turned]:
    """Of `…qd,…kd->…qk`, in either order, with the letters of both in any. Raises `UsageError` for any other sum."""
    left, right, made, first, second = _read(file, call)
    batch, query, key = made[:-2], made[-2], made[-1]
    for one, other, queries, keys in ((left, right, first, second), (right, left, second, first)):
        summed = [letter for letter in one if letter not in made]
        if len(summed) != 1 or not _apart(batch, query + key + summed[0]):
            continue
        turned = _order(one, batch + query + summed[0]), _order(other, batch + key + summed[0])
        if turned[0] is not None and turned[1] is not None:
            return (queries, turned[0]), (keys, turned[1])
    raise _unknown(file, call, "a product of queries and keys")


def values(file: PythonFile, call: cst.Call, weights: cst.BaseExpression) -> tuple[Turned, str]:
    """The values in `…qk,…kd->…qd`, in either order, with the letters of values and result in any; and what turns the result.

    Raises `UsageError` for any other sum.
    """
    left, right, made, first, second = _read(file, call)
    if first is not weights:
        left, right, second = right, left, first
    batch, query, key = left[:-2], left[-2], left[-1]
    width = [letter for letter in right if letter not in left]
    if len(width) == 1 and _apart(batch, query + key + width[0]):
        turned, back = _order(right, batch + key + width[0]), _order(batch + query + width[0], made)
        if turned is not None and back is not None:
            return (second, turned), back
    raise _unknown(file, call, "a product of weights and values")


def _order(letters: str, wanted: str) -> str | None:
    """The call that turns dimensions of `letters` into those of `wanted`; None where they are others."""
    if letters == wanted:
        return ""
    if ANY in letters or sorted(letters) != sorted(wanted):
        return None
    order = [letters.index(letter) for letter in wanted]
    moved = [at for at, each in enumerate(order) if at != each]
    return f".transpose({moved[0]}, {moved[1]})" if len(moved) == 2 else f".permute({', '.join(map(str, order))})"


def _read(file: PythonFile, call: cst.Call) -> tuple[str, str, str, cst.BaseExpression, cst.BaseExpression]:
    """Letters of both operands and of the result, and the operands."""
    plain = len(call.args) == 3 and not any(arg.keyword is not None or arg.star for arg in call.args)
    equation = string_value(call.args[0].value) if plain else None
    parts = EQUATION.fullmatch("".join((equation or "").split()))
    if parts is None:
        raise _unknown(file, call, "a product of two tensors")
    left, right, made = ((ANY if parts[at] else "") + parts[at + 1] for at in (1, 3, 5))
    return left, right, made, call.args[1].value, call.args[2].value


def _apart(batch: str, others: str) -> bool:
    """Whether every letter stands for one thing, and there is something in front."""
    return len(batch) >= 1 and len(set(batch + others)) == len(batch + others)


def _unknown(file: PythonFile, call: cst.Call, what: str) -> Exception:
    return refuse(f"{file.location(call)}: `{file.text(call)}` is not understood as {what}")
