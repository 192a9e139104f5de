"""What outlives a call: attributes, containers and caches in which a function leaves what it computes."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import changes, purity, sharing
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import UNKNOWN, literal
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, own_method, parameter_names, string_value, targets_of

PLAIN = {"bool", "float", "int", "item", "len", "str", "time", "tolist"}  # what these give is no tensor
COLLECTS = {"add", "append", "extend", "insert", "put", "register_buffer", "setattr", "setdefault", "update"}
CACHES = ("functools.cache", "functools.lru_cache")


def of_function(file: PythonFile, function: cst.FunctionDef) -> cst.BaseExpression | None:
    """Where a function leaves a tensor in its object or in what it is handed."""
    own = parameter_names(function) | {"self"}
    for node in descendants(function.body, cst.Assign):
        for target in (each.target for each in node.targets):
            if not isinstance(target, cst.Name) and changes.root(target) in own and not _plain(node.value):
                return target
    for call in descendants(function.body, cst.Call):
        held = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "append" else None
        if held is not None and changes.root(held) in own and not all(_plain(arg.value) for arg in call.args):
            return call.func
    return None


def of_network(file: PythonFile, function: cst.FunctionDef) -> cst.CSTNode | None:
    """Where a function that a network runs leaves a tensor: in the network, in a variable of the module, or in a cache."""
    if function.name.value in callees.CONSTRUCTORS:
        return None
    if purity.cached_already(file, function):
        return function
    network = _is_network(file, function)
    outside = _module_names(file)
    given = [each for target in descendants(function, cst.AssignTarget) for each in sharing.elements(target.target)]
    local = {each.value for each in given if isinstance(each, cst.Name)}
    for node in descendants(function.body, (cst.Assign, cst.AugAssign, cst.Call)):
        if isinstance(node, cst.Call):
            kept = _collected(node)
            cached = dotted(node.func) if isinstance(node.func, cst.Name) else None
            if cached is not None and _is_cache(file, outside.get(cached)):
                return node
        else:
            kept = None if _plain(node.value) else next((each for each in targets_of(node) if not isinstance(each, cst.Name)), None)
        name = changes.root(kept) if kept is not None else ""
        if (name == "self" and network) or (name in outside and name not in local):
            return node
    return None


def _collected(call: cst.Call) -> cst.BaseExpression | None:
    """What a call puts a tensor into."""
    name = callees.called_name(call)
    if name not in COLLECTS or all(_plain(arg.value) for arg in call.args):
        return None
    if not isinstance(call.func, cst.Attribute):
        return call.args[0].value if name == "setattr" else None
    return call.func.value


def _plain(value: cst.BaseExpression) -> bool:
    """Whether a value is a number, a text, True, False or None as it stands."""
    if isinstance(value, cst.Call):
        return callees.called_name(value) in PLAIN
    if isinstance(value, (cst.BinaryOperation, cst.Comparison)):
        return False
    return literal(value) is not UNKNOWN or string_value(value) is not None or isinstance(value, cst.FormattedString)


def _module_names(file: PythonFile) -> dict[str, cst.BaseExpression]:
    """Variables of the module, with what they are first given."""
    found: dict[str, cst.BaseExpression] = {}
    for line in file.module.body:
        for node in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(node, cst.Assign):
                found |= {target.target.value: node.value for target in node.targets if isinstance(target.target, cst.Name)}
            elif isinstance(node, cst.AnnAssign) and isinstance(node.target, cst.Name) and node.value is not None:
                found[node.target.value] = node.value
    return found


def _is_cache(file: PythonFile, value: cst.BaseExpression | None) -> bool:
    made = value
    while isinstance(made, cst.Call):
        if file.full_name(made.func) in CACHES:
            return True
        made = made.func
    return False


def _is_network(file: PythonFile, function: cst.FunctionDef) -> bool:
    owner = file.class_of(function)
    return owner is not None and own_method(owner, "forward") is not None
