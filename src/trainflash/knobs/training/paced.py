"""How a condition says that something happens once in N steps: by a remainder, by what is named or asked for one, or by a count.

A count begins again where the block runs (`since = 0`), or the block keeps the step of this time (`last = step`) or of the next one
(`coming += N`). Those statements belong to the condition, and not to what it guards.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, is_name, literal, passed
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, descendants, dotted, is_docstring, sole

Paced = tuple[list[cst.BaseExpression], list[cst.CSTNode]]  # each N, and the statements that keep the count
ROUNDS = ("len", "max", "min", "int", "round")  # calls that give the same number each time


def paced(project: Project, file: PythonFile, guard: cst.If) -> Paced:
    """N of the condition of `guard`; empty where it is said in no way that is known."""
    numbers = remainders(guard.test)
    if numbers:
        return numbers, []
    for part in _operands(guard.test):
        numbers = _named(file, part) or _asked(project, file, part)
        if numbers:
            return numbers, []
    for part in _operands(guard.test):
        found = _counted(file, guard, part)
        if found is not None:
            return [found[0]], [found[1]]
    return [], []


def meets_once(file: PythonFile, guard: cst.If) -> bool:
    """Whether the block runs when a count is exactly N: where that moment is missed, it runs never again."""
    exact = [part for part in _operands(guard.test) if isinstance(part, cst.Comparison) and _operators(part) == [cst.Equal]]
    return any(_counted(file, guard, part) is not None for part in exact)


def remainders(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """N of each `… % N == k` and `not … % N`; in another condition a larger N may mean more often."""
    sides = [each.left for each in descendants(test, cst.Comparison) if _operators(each) == [cst.Equal]]  # type: ignore[attr-defined,arg-type]
    sides += [each.expression for each in descendants(test, cst.UnaryOperation) if isinstance(each.operator, cst.Not)]  # type: ignore[attr-defined]
    found = [node for node in sides if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo)]
    return [node.right for node in found if not isinstance(node.left, (cst.BaseString, cst.FormattedString))]


def worked_out(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether N is computed here or in the function around, from names, numbers and calls that only round, measure or compare."""
    if isinstance(node, cst.Name):
        values = given_to(file.function_around(node) or file.module, node.value)
        return len(values) == 1 and not isinstance(values[0], cst.Name) and worked_out(file, values[0])
    calls = list(descendants(node, cst.Call))
    computed = bool(calls) or isinstance(node, cst.BinaryOperation)
    return computed and all(dotted(call.func) in ROUNDS for call in calls)  # type: ignore[attr-defined]


def _operators(node: cst.Comparison) -> list[type]:
    return [type(one.operator) for one in node.comparisons]


def _operands(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [*_operands(test.left), *_operands(test.right)] if isinstance(test, cst.BooleanOperation) else [test]


def _named(file: PythonFile, part: cst.BaseExpression) -> list[cst.BaseExpression]:
    """N of `due = step % N == 0`, where only this condition reads `due`."""
    if not isinstance(part, cst.Name):
        return []
    around = file.function_around(part) or file.module
    values = given_to(around, part.value)
    read = [node for node in descendants(around, cst.Name) if node.value == part.value and is_name(file, node)]  # type: ignore[attr-defined,arg-type]
    return remainders(values[0]) if len(values) == 1 and len(read) == 2 else []


def _asked(project: Project, file: PythonFile, part: cst.BaseExpression) -> list[cst.BaseExpression]:
    """N of a function or property that only returns a remainder: its argument here, or, where this alone asks, what stands there."""
    if isinstance(part, cst.Call):
        found = list(callees.meant(project, file, part))
    elif isinstance(part, cst.Attribute) and dotted(part.value) == "self":
        found = [each for each in project.functions(part.attr.value) if "property" in decorator_names(*each)]
    else:
        return []
    where, function = found[0] if len(found) == 1 else (file, None)
    last = function.body.body[-1] if function is not None and function.body.body else None
    line = last if isinstance(last, cst.Return) else sole(last)  # also `def due(step): return …` in one line
    plain = function is not None and len([each for each in function.body.body if not is_docstring(each)]) == 1
    numbers = remainders(line.value) if plain and isinstance(line, cst.Return) and line.value is not None else []
    if len(numbers) != 1 or where is not file or function is None:
        return []
    params = {each.name.value: each for each in function.params.params}
    if isinstance(numbers[0], cst.Name) and numbers[0].value in params and isinstance(part, cst.Call):
        given = passed(file, part, file, function, params[numbers[0].value])
        return [given] if given is not None else []
    readers = callers.sites(project, file, function) if isinstance(part, cst.Call) else _readers(project, function.name.value)
    return numbers if len(readers) == 1 else []


def _readers(project: Project, name: str) -> list[cst.CSTNode]:
    return [node for file in project.parsed(name) for node in file.each(cst.Attribute) if node.attr.value == name]


def _counted(file: PythonFile, guard: cst.If, part: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.CSTNode] | None:
    """N of a count, and the statement of the block that keeps it."""
    if not isinstance(part, cst.Comparison) or _operators(part) not in ([cst.GreaterThanEqual], [cst.GreaterThan], [cst.Equal]):
        return None
    left, right = part.left, part.comparisons[0].comparator
    difference = isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Subtract)
    for line in guard.body.body:
        small = sole(line)
        adds = isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign) and dotted(small.target) is not None
        if adds and dotted(small.target) == dotted(right):  # step >= coming: coming += N
            return small.value, line
        if not isinstance(small, cst.Assign) or len(small.targets) != 1 or dotted(small.targets[0].target) is None:
            continue
        name, value = dotted(small.targets[0].target), small.value
        if name == dotted(left) and literal(value) == 0 and _adds_one(file, guard, name):  # since >= N: since = 0
            return right, line
        if difference and name == dotted(left.right) and file.text(value) == file.text(left.left):  # step - last >= N: last = step
            return right, line
        ahead = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add)
        if ahead and name == dotted(right) and file.text(value.left) == file.text(left):  # step >= coming: coming = step + N
            return value.right, line
    return None


def _adds_one(file: PythonFile, guard: cst.If, name: str | None) -> bool:
    """Whether `name` grows by one at a time around `guard`, and by nothing else."""
    around = file.class_around(guard) or file.function_around(guard) or file.module
    added = [each for each in descendants(around, cst.AugAssign) if dotted(each.target) == name]  # type: ignore[attr-defined]
    return bool(added) and all(isinstance(each.operator, cst.AddAssign) and literal(each.value) == 1 for each in added)  # type: ignore[attr-defined]
