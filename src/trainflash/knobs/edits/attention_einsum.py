"""Products of attention that are written as `torch.einsum`: which letters stand for the batch, for queries, keys and what is summed."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, string_value

NAME = "torch.einsum"
EQUATION = re.compile(r"(\.\.\.)?([A-Za-z]+),(\.\.\.)?([A-Za-z]+)->(\.\.\.)?([A-Za-z]+)")
ANY = "\u2026"  # stands for `...`, whatever lies in front


def queries_and_keys(file: PythonFile, call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """Of `…qd,…kd->…qk`, in either order. Raises `UsageError` for any other sum."""
    left, right, made, first, second = _read(file, call)
    batch, query, key = made[:-2], made[-2], made[-1]
    for one, other, queries, keys in ((left, right, first, second), (right, left, second, first)):
        summed = one[-1:]
        if summed not in made and (one, other) == (batch + query + summed, batch + key + summed) and _apart(batch, query + key + summed):
            return queries, keys
    raise _unknown(file, call, "a product of queries and keys")


def values(file: PythonFile, call: cst.Call, weights: cst.BaseExpression) -> cst.BaseExpression:
    """The values in `…qk,…kd->…qd`, in either order. Raises `UsageError` for any other sum."""
    left, right, made, first, second = _read(file, call)
    if first is not weights:
        left, right, second = right, left, first
    batch, query, width = made[:-2], made[-2], made[-1]
    key = left[-1:]
    if (left, right) == (batch + query + key, batch + key + width) and _apart(batch, query + key + width):
        return second
    raise _unknown(file, call, "a product of weights and values")


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
