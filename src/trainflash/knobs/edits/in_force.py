"""Whether a setting that stands in the program is one that the run made: a value in a branch that was not taken decides nothing."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, string_value

ON_A_DEVICE = re.compile(r"(use_|with_|has_|is_)?(cuda|gpu)(_available)?$")  # own: how programs call what says so
ON_NONE = re.compile(r"(no_|not_)(cuda|gpu)$|(use_|force_)?cpu$")
COUNTS = ("device_count", "n_gpu", "num_gpus")
OTHERWISE = (cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase)


def in_force(project: Project, file: PythonFile, node: cst.CSTNode, device: object) -> None:
    """Raises `UsageError` where the source does not show that a run on `device` came by the statement at `node`."""
    barred = _barred(project, file, node, device, frozenset())
    if barred is not None:
        raise refuse(f"{file.location(node)}: {barred}, so this may not be what the run had")


def _barred(project: Project, file: PythonFile, node: cst.CSTNode, device: object, seen: frozenset[cst.CSTNode]) -> str | None:
    """What may keep a run from the statement; None where nothing does."""
    function = file.function_around(node)
    below: cst.CSTNode = node
    for up in file.ancestors(node):
        branch = isinstance(up, (cst.If, cst.While)) and below is not up.test
        taken = branch and (_holds(file, up.test, device) if below is up.body else _fails(file, up.test, device))  # type: ignore[union-attr]
        if branch and not taken:
            return f"it depends on `{short(file.text(up.test))}`"  # type: ignore[union-attr]
        if isinstance(up, OTHERWISE):
            return f"it depends on what happens in front of line {file.lines_of(up)[0]}"
        if up is function:
            break
        below = up
    if function is None or function in seen or file.class_of(function) is not None or function.decorators:
        return None
    sites = callers.sites(project, file, function)
    if not sites:
        used = any(_mentioned(where, each, function) for where in project.parsed(function.name.value) for each in where.nodes)
        return None if used else f"nothing in the program calls {function.name.value}"
    bars = [_barred(project, where, call, device, seen | {function}) for where, call in sites]
    return None if None in bars else bars[0]


def _mentioned(file: PythonFile, node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    """Whether `node` names the function, other than to define or import it."""
    name = node.attr if isinstance(node, cst.Attribute) else node
    up = file.parent(node)
    if isinstance(up, cst.FunctionDef) or any(isinstance(each, (cst.Import, cst.ImportFrom)) for each in file.ancestors(node)):
        return False
    return (name.value if isinstance(name, cst.Name) else _string(node)) == function.name.value


def _string(node: cst.CSTNode) -> str | None:
    return string_value(node) if isinstance(node, cst.SimpleString) else None


def _holds(file: PythonFile, test: cst.BaseExpression, device: object, depth: int = 0) -> bool:
    """Whether a condition is known to hold: the library has the function, the module is the script, the run had the device."""
    on_device = str(device).startswith("cuda")
    if isinstance(test, cst.BooleanOperation):
        sides = [_holds(file, side, device, depth) for side in (test.left, test.right)]
        return all(sides) if isinstance(test.operator, cst.And) else any(sides)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return on_device and ON_NONE.match((dotted(test.expression) or "").split(".")[-1]) is not None
    if isinstance(test, cst.Call):
        name = dotted(test.func) or ""
        if on_device and name.endswith(".startswith") and test.args:
            return (string_value(test.args[0].value) or "").startswith("cuda")
        return name == "hasattr" or (on_device and (file.full_name(test.func) == "torch.cuda.is_available" or name.endswith(COUNTS)))
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _compares(file, test, on_device)
    if isinstance(test, cst.Name) and depth == 0:
        given = [each for owner in (file.function_around(test), file.module) if owner is not None for each in given_to(owner, test.value)]
        if given:
            return any(_holds(file, each, device, 1) for each in given)
    return on_device and ON_A_DEVICE.match((dotted(test) or "").split(".")[-1]) is not None


def _fails(file: PythonFile, test: cst.BaseExpression, device: object) -> bool:
    """Whether a condition is known not to hold."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _holds(file, test.expression, device)
    return str(device).startswith("cuda") and ON_NONE.match((dotted(test) or "").split(".")[-1]) is not None


def _compares(file: PythonFile, test: cst.Comparison, on_device: bool) -> bool:
    sign, right = test.comparisons[0].operator, test.comparisons[0].comparator
    left = file.text(test.left)
    if left == "__name__" or string_value(test.left) == "__main__":
        return isinstance(sign, cst.Equal)
    if "__version__" in left or "version" in left.lower():
        return isinstance(sign, (cst.GreaterThan, cst.GreaterThanEqual))
    if any(word in left for word in COUNTS):
        least = {cst.GreaterThan: 0, cst.GreaterThanEqual: 1}.get(type(sign))
        return on_device and least is not None and literal(right) == least
    texts = [string_value(test.left) or "", string_value(right) or ""]
    if isinstance(sign, (cst.NotEqual, cst.Is, cst.IsNot)):
        return on_device and isinstance(sign, cst.NotEqual) and "cpu" in texts
    return on_device and isinstance(sign, (cst.Equal, cst.In)) and any(text.startswith("cuda") for text in texts)
