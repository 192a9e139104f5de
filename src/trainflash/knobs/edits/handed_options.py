"""Options that a call takes in by `**`, one dictionary or another by some condition: another one goes behind them in the call itself."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import UNKNOWN, literal
from trainflash.knobs.reading.lookups import key_of
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, string_value
from trainflash.knobs.splices import Splice


def chosen_by_branch(file: PythonFile, call: cst.Call, name: str) -> cst.Arg | None:
    """The one `**options` of `call`, where this file writes out each value of its key `name`; None for any other `**`.

    `options` is a name that is given dictionaries, one or the other by some condition: `{"num_workers": 1} if use_cuda else {}`.
    """
    spreads = [arg for arg in call.args if arg.star]
    if len(spreads) != 1 or spreads[0].star != "**" or not isinstance(spreads[0].value, cst.Name):
        return None
    scope = file.scope(call)
    given = [file.parent(file.parent(each.node)) for each in (scope[spreads[0].value.value] if scope is not None else ()) if _is_node(each)]
    if not given or not all(isinstance(each, cst.Assign) and _is_display(file, each.value) for each in given):
        return None
    values = [value for node in file.nodes for value in _given_as(node, name)]
    return spreads[0] if values and all(literal(value) is not UNKNOWN for value in values) else None


def _is_node(assignment: object) -> bool:
    return isinstance(getattr(assignment, "node", None), cst.CSTNode)


def _is_display(file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether a value is a dictionary that is written out, or one of two such."""
    if isinstance(value, cst.IfExp):
        return _is_display(file, value.body) and _is_display(file, value.orelse)
    return isinstance(value, cst.Dict) or (isinstance(value, cst.Call) and file.full_name(value.func) == "dict")


def _given_as(node: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """What `node` puts under the key `name`: in a dictionary, by `dict` or `update`, or by an assignment."""
    if isinstance(node, cst.DictElement):
        return [node.value] if string_value(node.key) == name else []
    if isinstance(node, cst.Call) and (dotted(node.func) or "").split(".")[-1] in ("dict", "update"):
        given = keyword(node, name)
        return [] if given is None else [given.value]
    if isinstance(node, cst.Assign):
        return [node.value for target in node.targets if (place := key_of(target.target)) is not None and place[1] == name]
    return []


def overridden(file: PythonFile, spread: cst.Arg, name: str, value: str) -> Splice:
    """`**options` with `name` set behind whatever they hold."""
    start, end = file.span(spread)
    return Splice(file.path, start, end, f"**{{**{file.text(spread.value)}, {_quoted(file, name)}: {value}}}")


def _quoted(file: PythonFile, name: str) -> str:
    """`name` as a text, in the quotes that the file puts around it elsewhere."""
    return next((each.value for each in file.each(cst.SimpleString) if each.value == f"'{name}'"), f'"{name}"')
