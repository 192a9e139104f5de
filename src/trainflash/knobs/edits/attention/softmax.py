"""Weights of attention written by hand: where they are made, and the scores below their softmax."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.knobs.edits.attention.chain import Chain
from trainflash.knobs.reading.expressions import literal, made_as, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole

SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax")


def softmaxes(file: PythonFile, around: cst.CSTNode, rank: int | None) -> list[cst.BaseExpression]:
    """What in `around` gives weights that sum to one over the last dimension: torch's softmax, or a division by the sum."""
    called = [call for call in descendants(around, cst.Call) if softmax_of(file, call, rank) is not None]
    return [*called, *(node for node in descendants(around, cst.BinaryOperation) if _normalised(file, node, rank))]


def softmax_of(file: PythonFile, call: cst.Call, rank: int | None) -> cst.BaseExpression | None:
    """The scores that `call` takes the softmax of over the last dimension; None when it does something else."""
    rest: list[cst.Arg] = list(call.args)
    made = made_as(file, call.func)
    if file.full_name(call.func) in SOFTMAX and rest:
        scores = rest.pop(0).value
    elif made is not None and len(rest) == 1 and file.full_name(made.func) == "torch.nn.Softmax":
        scores, rest = rest[0].value, list(made.args)
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "softmax" and "torch" not in (file.full_name(call.func) or ""):
        scores = call.func.value
    else:
        return None
    return scores if len(rest) == 1 and _last(rest, rank) else None


def _last(given: list[cst.Arg], rank: int | None) -> bool:
    """Whether the first argument, or `dim`, is the last dimension."""
    dim = next((arg for arg in given if arg.keyword is not None and arg.keyword.value == "dim"), given[0] if given else None)
    named = dim is None or dim.keyword is None or dim.keyword.value == "dim"
    return dim is not None and named and literal(dim.value) in {-1, -1 if rank is None else rank - 1}


def _reduced(file: PythonFile, node: cst.BaseExpression, names: tuple[str, ...], rank: int | None) -> cst.BaseExpression | None:
    """What `node` reduces over the last dimension, keeping it; None when it does something else."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value not in names:
        return None
    of, given = subject(file, node)
    kept = keyword(node, "keepdim") or (given[1] if len(given) > 1 and given[1].keyword is None else None)
    return of if len(given) == 2 and _last(given, rank) and kept is not None and literal(kept.value) is True else None


def subject(file: PythonFile, call: cst.Call) -> tuple[cst.BaseExpression, list[cst.Arg]]:
    """The tensor that a function of torch or a method works on, and the other arguments."""
    assert isinstance(call.func, cst.Attribute)
    of_torch = (file.full_name(call.func) or "").startswith("torch.") and call.args
    return (call.args[0].value, list(call.args[1:])) if of_torch else (call.func.value, list(call.args))


def _normalised(file: PythonFile, node: cst.BinaryOperation, rank: int | None) -> bool:
    """Whether `node` divides by its own sum."""
    if not isinstance(node.operator, cst.Divide) or not isinstance(node.left, cst.Name):
        return False
    summed = _reduced(file, node.right, ("sum",), rank)
    return isinstance(summed, cst.Name) and summed.value == node.left.value


def exponent(chain: Chain, division: cst.BaseExpression) -> cst.BaseExpression:
    """The scores below `weights / weights.sum(…)`, where weights are `exp(scores)`, with or without their maximum taken away."""
    file = chain.file
    assert isinstance(division, cst.BinaryOperation) and isinstance(division.left, cst.Name)
    chain.gone.append(division.right)
    value = held(chain, division.left)
    if isinstance(value, cst.Call) and file.full_name(value.func) == "torch.exp" and len(value.args) == 1:
        power = value.args[0].value
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "exp" and not value.args:
        power = value.func.value
    else:
        raise refuse(f"{file.location(value)}: `{file.text(value)}` is not the exponential of scores")
    shifted = held(chain, power) if isinstance(power, cst.Name) and _shift(chain, peek(chain, power)) else power
    top = _shift(chain, shifted)
    if top is None:
        return power
    assert isinstance(shifted, cst.BinaryOperation)
    chain.gone.append(top)
    if isinstance(shifted.right, cst.Name):  # a step of its own, which goes too
        line = next(each for each in chain.block_before(shifted.right) if file.inside(top, each))
        if chain.reads_after(shifted.right.value, line)[0] != [shifted.right]:
            raise refuse(f"{file.location(line)}: {shifted.right.value} is read elsewhere, so it cannot go")
        chain.steps.append(line)
    return shifted.left


def held(chain: Chain, name: cst.Name) -> cst.BaseExpression:
    """What `name` holds, whose assignment is a step."""
    line, value = chain.definition(name)
    chain.steps.append(line)
    return value


def peek(chain: Chain, name: cst.Name, before: list[Any] | None = None) -> cst.BaseExpression | None:
    """What `name` was given last in its block, or in `before`, without asking who reads it."""
    for line in reversed(chain.block_before(name) if before is None else before):
        small = sole(line)
        if isinstance(small, cst.Assign) and any(dotted(target.target) == name.value for target in small.targets):
            return small.value if len(small.targets) == 1 else None
    return None


def _shift(chain: Chain, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The maximum over the last dimension that `node` takes away from the scores that it belongs to; None when it does something else."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
        return None
    top = peek(chain, node.right) if isinstance(node.right, cst.Name) else node.right
    value = top
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "detach" and not value.args:
        value = value.func.value
    if (isinstance(value, cst.Attribute) and value.attr.value == "values") or (isinstance(value, cst.Subscript) and _first(value)):
        value = value.value
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute) or value.func.attr.value not in ("amax", "max"):
        return None
    of, given = subject(chain.file, value)
    alike = not given or _reduced(chain.file, value, ("amax", "max"), chain.rank) is not None  # one number for all of a row
    return top if alike and chain.file.text(of) == chain.file.text(node.left) else None


def _first(node: cst.Subscript) -> bool:
    index = node.slice[0].slice
    return len(node.slice) == 1 and isinstance(index, cst.Index) and literal(index.value) == 0
