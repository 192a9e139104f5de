"""What single expressions say by themselves: literals, arguments of a call, what an assignment gives to a name."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    elements_of,
    has_splat,
    keyword,
    placed_parameters,
    positional,
    string_value,
    targets_of,
)

BY_HAND = "make this change by hand, or name another place with --at FILE:LINE"


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()


def same(a: Any, b: Any) -> bool:
    """Equal and of one kind: `True` is not 1, but 1 is 1.0."""
    return a is not UNKNOWN and b is not UNKNOWN and a == b and isinstance(a, bool) == isinstance(b, bool)


def refuse(reason: str, mend: str = BY_HAND) -> UsageError:
    """The error that says why a place is not edited."""
    return UsageError(reason, mend)


class NoPlace(UsageError):
    """The program has no place of the kind that an edit looks for: another edit of the knob may have one."""


def no_place(reason: str, mend: str = BY_HAND) -> NoPlace:
    """The error that says which place is not there."""
    return NoPlace(reason, mend)


def literal(node: cst.BaseExpression) -> Any:
    """The value of a number, text, True, False or None; `UNKNOWN` for any other expression."""
    sign = 1
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        sign, node = -1, node.expression
    if isinstance(node, (cst.Integer, cst.Float)):
        return sign * ast.literal_eval(node.value)
    if isinstance(node, cst.Name) and node.value in ("True", "False", "None") and sign == 1:
        return {"True": True, "False": False, "None": None}[node.value]
    text = string_value(node)
    return UNKNOWN if text is None or sign == -1 else text


def spelled_value(value: Any) -> str:
    """`value` as Python source: text in double quotes, anything else as Python shows it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def argument_node(file: PythonFile, call: cst.Call, name: str, index: int | None) -> cst.BaseExpression | None:
    """The expression that `call` passes as `name`, by keyword or position; raises `UsageError` when a `*splat` hides it."""
    given = keyword(call, name) or positional(call, index)
    if given is None and index is not None and has_splat(call, "*"):
        raise refuse(f"{file.location(call)}: a *splat may pass {name}")
    return None if given is None else given.value


def passed(where: PythonFile, call: cst.Call, file: PythonFile, function: cst.FunctionDef, param: cst.Param) -> cst.BaseExpression | None:
    """The expression that `call` passes to a parameter of `function`, None where that is not passed; raises as `argument_node`.

    Behind the only `*splat` arguments are counted from the end, where the function has no optional parameters that could take one.
    """
    index = index_of(file, function, param)
    taken = function.params
    ordered = placed_parameters(function)
    behind = [arg for arg in call.args if arg.keyword is None or arg.star]
    stars = [number for number, arg in enumerate(behind) if arg.star]
    exact = not isinstance(taken.star_arg, cst.Param) and all(each.default is None for each in ordered)
    if index is not None and exact and len(stars) == 1 and behind[stars[0]].star == "*" and len(behind) == len(call.args):
        from_end = len(ordered) - ordered.index(param)
        if from_end <= len(behind) - 1 - stars[0]:
            return behind[-from_end].value
    return argument_node(where, call, param.name.value, index)


def order(file: PythonFile, assignment) -> int:
    node = getattr(assignment, "node", None)
    return file.lines_of(node)[0] if node is not None else 0


def assigned(file: PythonFile, target: cst.CSTNode) -> cst.BaseExpression | None:
    """What a plain assignment gives to the name `target`; None for loops, `with … as`, augmented and unpacked values."""
    up = file.parent(target)
    if isinstance(up, cst.AssignTarget):
        return file.parent(up).value  # type: ignore[union-attr]
    if isinstance(up, cst.AnnAssign):
        return up.value
    if isinstance(up, cst.Element) and isinstance(file.parent(up), cst.Tuple):
        around = file.parent(up)
        assign = file.parent(file.parent(around)) if isinstance(file.parent(around), cst.AssignTarget) else None
        place = [element.value for element in around.elements].index(target)  # type: ignore[union-attr]
        if isinstance(assign, cst.Assign) and isinstance(assign.value, cst.Tuple) and len(assign.value.elements) == len(around.elements):
            return assign.value.elements[place].value
        if isinstance(assign, cst.Assign) and isinstance(assign.value, cst.Call) and place == 0:
            called = assign.value.func
            if isinstance(called, cst.Attribute) and called.attr.value == "parse_known_args":
                return assign.value
    return None


def index_of(file: PythonFile, function: cst.FunctionDef, param: cst.Param) -> int | None:
    """Position of `param` in a call, the object itself not counted; None for keyword-only ones and the object."""
    ordered = placed_parameters(function)
    if param not in ordered:
        return None
    static = any(dotted(each.decorator) == "staticmethod" for each in function.decorators)
    index = ordered.index(param) - (1 if file.class_of(function) is not None and not static else 0)
    return index if index >= 0 else None


def is_name(file: PythonFile, node: cst.Name) -> bool:
    """Whether `node` is a variable, and neither an attribute nor a keyword."""
    up = file.parent(node)
    return not ((isinstance(up, cst.Attribute) and up.attr is node) or (isinstance(up, cst.Arg) and up.keyword is node))


def given_to(owner: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """What assignments in `owner` give to the dotted `name`, also where they unpack a tuple that is written out."""
    return [value for node in descendants(owner, (cst.Assign, cst.AnnAssign)) for value in _gives(node, name)]  # type: ignore[arg-type]


def _gives(node: cst.Assign | cst.AnnAssign, name: str) -> Iterator[cst.BaseExpression]:
    for target in targets_of(node):
        if dotted(target) == name and node.value is not None:
            yield node.value
        if isinstance(target, (cst.Tuple, cst.List)) and isinstance(node.value, (cst.Tuple, cst.List)):
            pairs = zip(target.elements, node.value.elements, strict=False)
            yield from (given.value for part, given in pairs if dotted(part.value) == name)


def conjuncts(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a condition joins by `and`, from left to right."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return [*conjuncts(test.left), *conjuncts(test.right)]
    return [test]


def plain_names(target: cst.BaseExpression) -> list[str] | None:
    """The variables that an assignment to `target` gives a value; None where it also gives one to something else."""
    each = elements_of(target)
    return [one.value for one in each] if all(isinstance(one, cst.Name) for one in each) else None  # type: ignore[attr-defined]


def class_values(body: cst.IndentedBlock, name: str) -> list[cst.BaseExpression]:
    """What assignments that stand in `body` itself give to `name`."""
    statements = (each for line in body.body if isinstance(line, cst.SimpleStatementLine) for each in line.body)
    return [value for each in statements if isinstance(each, (cst.Assign, cst.AnnAssign)) for value in _gives(each, name)]


def fallback(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The default in `x.get("key", default)` or `getattr(x, "key", default)`."""
    if not isinstance(node, cst.Call):
        return None
    index = 2 if dotted(node.func) == "getattr" else 1
    if isinstance(node.func, cst.Attribute) and node.func.attr.value.startswith("get") and node.func.attr.value != "get":
        index = next((at for at, arg in enumerate(node.args) if arg.keyword is not None), len(node.args))  # behind section and key
    return node.args[index].value if len(node.args) > index else None


def environment(file: PythonFile, node: cst.BaseExpression) -> tuple[str, cst.BaseExpression | None] | None:
    """The variable and the default of `os.environ.get(…)`, `os.getenv(…)` or `os.environ[…]`; None for anything else."""
    if isinstance(node, cst.Call) and node.args and file.full_name(node.func) in ("os.environ.get", "os.getenv"):
        name, default = string_value(node.args[0].value), argument_node(file, node, "default", 1)
        return None if name is None else (name, default)
    if isinstance(node, cst.Subscript) and file.full_name(node.value) == "os.environ" and len(node.slice) == 1:
        index = node.slice[0].slice
        name = string_value(index.value) if isinstance(index, cst.Index) else None
        return None if name is None else (name, None)
    return None


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "…"
