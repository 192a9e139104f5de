"""Whether a method that asks for many keys gives one result for each, in their order, and whatever their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import is_name, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, placed_parameters

SEQUENCES = ("list", "tuple", "iter", "enumerate", "zip")  # calls that keep all keys and their order
STACKS = ("stack", "array", "asarray", "tensor", "as_tensor")  # calls that make one array of a list
OTHERWISE = ("set", "sorted", "sum", "min", "max", "dict", "frozenset", "range", "reversed", "dict.fromkeys")
DEEPEST = 4  # own: methods of the program's between a request and what answers it


def one_for_each(project: Project, file: PythonFile, function: cst.FunctionDef, depth: int = 0) -> None:
    """Raises `UsageError` where the source does not show that.

    It shows it where a result is made for one key after another. Where the keys are handed on as they are, whoever answers them for
    a list of one as well decides: but not where a text goes with them, such as a query, which names what is wanted and in which order.
    """
    here, name = file.location(function), function.name.value
    params = [param.name.value for param in placed_parameters(function) if param.name.value != "self"]
    if len(params) != 1 or depth > DEEPEST:
        raise refuse(f"{here}: what {name} gives for its keys is not known")
    keys, each_alone, counted = params[0], False, False
    for use in descendants(function.body, cst.Name):
        if use.value != keys or not is_name(file, use):  # type: ignore[attr-defined,arg-type]
            continue
        how = _use(file, use)  # type: ignore[arg-type]
        if how == "other":
            line = short(file.text(file.statement(use) or file.parent(use) or use))
            raise refuse(f"{file.location(use)}: whether {name} gives one result for each key in turn is not known, by `{line}`")
        each_alone, counted = each_alone or how == "each", counted or how == "counted"
    if each_alone:
        return
    if counted or _asks_by_text(file, function):
        raise refuse(f"{here}: {name} asks by a text which results come, and in which order, is not known")
    for call in _handed(file, function, keys):
        for where, inner in callees.meant(project, file, call):
            one_for_each(project, where, inner, depth + 1)


def _use(file: PythonFile, name: cst.Name) -> str:
    """What is done with the keys where they are named: a result is made for `each`, they are `handed` on as they are, only `counted`, or
    the method ends where they are `empty`."""
    node: cst.CSTNode = name
    up = file.parent(node)
    while _keeps(file, up, node):
        node = file.parent(up)  # type: ignore[arg-type,assignment]
        up = file.parent(node)
    if isinstance(up, cst.CompFor):
        made = next(each for each in file.ancestors(up) if clauses(each))
        if len(clauses(made)) != 1 or up.ifs or not isinstance(made, (cst.ListComp, cst.GeneratorExp)):
            return "other"
        return "each" if _given_back(file, made) else "handed"
    if isinstance(up, cst.For) and up.iter is node:
        if next(descendants(up.body, (cst.If, cst.Continue, cst.Break, cst.Try, cst.Return)), None) is not None:
            return "other"
        adds = [call.func.value for call in descendants(up.body, cst.Call) if callees.method_name(call) == "append"]  # type: ignore[arg-type,attr-defined]
        return "each" if len(adds) == 1 and _returned(file, adds[0]) else "handed"
    if isinstance(up, cst.UnaryOperation) and isinstance(up.operator, cst.Not) and isinstance(file.parent(up), cst.If):
        return "empty" if _leaves(file.parent(up)) else "other"  # type: ignore[arg-type]
    call = file.parent(up) if isinstance(up, cst.Arg) and not up.star else None
    if isinstance(call, cst.Call) and dotted(call.func) == "len":
        tested = (cst.Comparison, cst.If, cst.While, cst.IfExp, cst.Assert, cst.BooleanOperation)
        return "other" if any(isinstance(each, tested) for each in file.ancestors(call)) else "counted"
    return "handed" if isinstance(call, cst.Call) and dotted(call.func) not in OTHERWISE else "other"


def _given_back(file: PythonFile, made: cst.CSTNode) -> bool:
    """Whether what is made for each key is what the method returns, also as one array."""
    node, up = made, file.parent(made)
    while isinstance(up, cst.Arg) and callees.called_name(file.parent(up)) in (*SEQUENCES, *STACKS):  # type: ignore[arg-type]
        node = file.parent(up)  # type: ignore[assignment]
        up = file.parent(node)
    if isinstance(up, cst.AssignTarget):
        return False
    if isinstance(up, cst.Assign) and len(up.targets) == 1:
        return _returned(file, up.targets[0].target)
    return isinstance(up, cst.Return)


def _returned(file: PythonFile, name: cst.BaseExpression) -> bool:
    function = file.function_around(name)
    given = [each.value for each in descendants(function.body, cst.Return)] if function is not None else []  # type: ignore[attr-defined]
    return isinstance(name, cst.Name) and any(dotted(each) == name.value for each in given)


def _keeps(file: PythonFile, up: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    """Whether `up` holds the same keys in the same order as `node`: `list(keys)`, `[*keys]`."""
    if isinstance(up, cst.StarredElement):
        whole = file.parent(up)
        return isinstance(whole, (cst.List, cst.Tuple)) and len(whole.elements) == 1
    call = file.parent(up) if isinstance(up, cst.Arg) and not up.star else None
    return isinstance(call, cst.Call) and dotted(call.func) in SEQUENCES


def _leaves(test: cst.If) -> bool:
    """Whether the block does nothing but return an empty list."""
    lines: Sequence[cst.CSTNode] = test.body.body
    only = lines[0] if len(lines) == 1 else None
    small = only.body[0] if isinstance(only, cst.SimpleStatementLine) and len(only.body) == 1 else only
    empty = isinstance(small, cst.Return) and isinstance(small.value, (cst.List, cst.Tuple)) and not small.value.elements
    return empty and test.orelse is None


def _asks_by_text(file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether a text stands in the function that is no documentation."""
    texts = descendants(function.body, (cst.FormattedString, cst.SimpleString))
    return any(not isinstance(file.parent(each), cst.Expr) for each in texts)


def _handed(file: PythonFile, function: cst.FunctionDef, keys: str) -> Iterator[cst.Call]:
    for call in descendants(function.body, cst.Call):
        named = any(node.value == keys for arg in call.args for node in descendants(arg, cst.Name))  # type: ignore[attr-defined]
        if named and dotted(call.func) not in SEQUENCES:  # type: ignore[attr-defined]
            yield call  # type: ignore[misc]
