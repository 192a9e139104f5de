"""Who calls a function, as the program's text shows, and who calls it from outside."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, passed
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, dotted
from trainflash.knobs.remembered import remembered

BINDING = {"property", "staticmethod"}  # Python's own; a cache belongs under them, around the function itself
COMMANDS = ("fire.Fire", "typer.run", "defopt.run", "jsonargparse.CLI", "tyro.cli")


@remembered
def sites(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[PythonFile, cst.Call]]:
    """Calls of `function` that the program's text shows; of a class, for its `__init__`."""
    owner = file.class_of(function)
    constructor = owner is not None and function.name.value == "__init__"
    name = owner.name.value if constructor else function.name.value  # type: ignore[union-attr]
    found = []
    for where in project.parsed(name):
        for call in where.calls_of(name):
            called = dotted(call.func)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == name:
                module = where.import_of(call.func)
                local = module is not None and project.has_module(module)
                if (owner is not None and not constructor and module is None) or ((owner is None or constructor) and local):
                    found.append((where, call))
            elif called == name and (owner is None or constructor):
                found.append((where, call))
            elif (owner is None or constructor) and isinstance(call.func, cst.Name):
                found += [(where, call)] if (where.import_of(call.func) or "").split(".")[-1] == name else []
    return found


def led_from(project: Project, file: PythonFile, node: cst.CSTNode, deepest: int) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """`node` itself, and what calls the functions around it, nearest first, through `deepest` functions; each function once."""
    places: list[tuple[PythonFile, cst.CSTNode]] = [(file, node)]
    seen: set[int] = set()
    for _ in range(deepest + 2):
        yield from places
        around = [(where, function) for where, each in places if (function := where.function_around(each)) is not None]
        fresh = {id(function): (where, function) for where, function in around if id(function) not in seen}
        seen |= set(fresh)
        places = [site for where, function in fresh.values() for site in sites(project, where, function)]


def only_argument(
    project: Project, file: PythonFile, function: cst.FunctionDef, param: cst.Param
) -> tuple[PythonFile, cst.BaseExpression] | None:
    """What the only call of `function` hands to its parameter; None where there are several, or it is not passed."""
    found = sites(project, file, function)
    given = passed(*found[0], file, function, param) if len(found) == 1 else None
    return None if given is None else (found[0][0], given)


def results(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """Where the program gets a result of `function`: its calls, of a property every reading of an attribute of that name."""
    if not any(bound_by(file, name) == "property" for name in decorator_names(file, function)):
        return list(sites(project, file, function))
    name = function.name.value
    read = [(where, node) for where in project.parsed(name) for node in where.each(cst.Attribute)]
    return [(where, node) for where, node in read if node.attr.value == name]


def bound_by(file: PythonFile, decorator: str) -> str | None:
    """Which of `BINDING` a decorator is, by its own name or by one that the module gives it once; None for any other."""
    given = [dotted(value) or "?" for value in given_to(file.module, decorator)]
    name = given[0] if len(given) == 1 else decorator if not given else ""
    return name if name in BINDING else None


def means(project: Project, where: PythonFile, call: cst.Call, file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether a call by that name in `where` is one of `function`: a method where no other class or function has one so called."""
    module = where.import_of(call.func)
    if file.class_of(function) is None:
        return True
    if module is not None and not project.has_module(module):
        return False
    return isinstance(call.func, cst.Attribute) and len(project.functions(function.name.value)) == 1


def partials(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[PythonFile, cst.Call]]:
    """Calls of `functools.partial` that bind arguments of `function`."""
    name = function.name.value
    calls = [(where, call) for where in project.parsed("partial", name) for call in where.calls if call.args]
    bound = [(where, call) for where, call in calls if where.full_name(call.func) in ("functools.partial", "partial")]
    return [(where, call) for where, call in bound if (dotted(call.args[0].value) or "").split(".")[-1] == name]


def is_command(project: Project, file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether a library makes a command line of the function's parameters."""
    if any(name.split(".")[-1] == "command" for name in decorator_names(file, function)):
        return True
    calls = [(where, call) for where in project.parsed(function.name.value) for call in where.calls if call.args]
    named = [call for where, call in calls if where.full_name(call.func) in COMMANDS]
    return any(dotted(call.args[0].value) == function.name.value for call in named)
