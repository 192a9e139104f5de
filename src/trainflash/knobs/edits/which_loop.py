"""Which loop a finding's line means: one around it, in the functions that it calls, in its own, or around that one's calls."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted

CALLERS = 3  # own: how many calls up a loop may stand around the function that a finding names


def near(project: Project, file: PythonFile, line: int, kinds: tuple[type, ...]) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Loops of `kinds` that may be meant, each once, the likeliest first."""
    seen: set[int] = set()
    for where, loop in _candidates(project, file, line, kinds):
        if id(loop) not in seen:
            seen.add(id(loop))
            yield where, loop


def _candidates(project: Project, file: PythonFile, line: int, kinds: tuple[type, ...]) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    loops = [node for node in file.nodes if isinstance(node, kinds)]
    yield from ((file, loop) for loop in reversed(loops) if file.covers(loop, line))
    meant = [list(callees.meant(project, file, call)) for call in file.calls if file.lines_of(call)[0] == line]
    for where, each in (found[0] for found in meant if len(found) == 1):
        yield from ((where, loop) for loop in descendants(each, kinds))
    function = next((each for each in reversed(file.functions) if file.covers(each, line)), None)
    if function is None:
        return
    yield from ((file, loop) for loop in reversed(loops) if file.inside(loop, function))
    todo, seen = [(file, function, 0)], {id(function)}
    while todo:
        where, each, calls = todo.pop(0)
        for other, site in (*callers.sites(project, where, each), *_mapping(project, each), *_of_table(project, where, each)):
            yield from ((other, up) for up in ((site,) if is_map(other, site) else other.ancestors(site)) if isinstance(up, kinds))
            above = other.function_around(site)
            if above is not None and calls < CALLERS and id(above) not in seen:
                seen.add(id(above))
                todo.append((other, above, calls + 1))


def is_map(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is a call of `map`, which is a loop."""
    return isinstance(node, cst.Call) and file.full_name(node.func) == "map" and len(node.args) > 1


def _mapping(project: Project, function: cst.FunctionDef) -> Iterator[tuple[PythonFile, cst.Call]]:
    """Calls of `map` that call the function."""
    for file in project.parsed(function.name.value, "map"):
        for call in file.calls:
            if is_map(file, call) and any(each is function for _, each in callees.behind(project, file, call.args[0].value)):
                yield file, call


def _of_table(project: Project, file: PythonFile, function: cst.FunctionDef) -> Iterator[tuple[PythonFile, cst.Call]]:
    """Calls of what goes through a list of functions in which the function stands: `sum(f(x) for f in TABLE)`."""
    for node in file.nodes:
        table = file.parent(node) if isinstance(node, cst.Element) and dotted(node.value) == function.name.value else None
        line = file.parent(table) if isinstance(table, (cst.Tuple, cst.List)) else None
        names = [dotted(each.target) for each in line.targets] if isinstance(line, cst.Assign) else []
        for name in filter(None, names):
            for where in project.parsed(name):
                for call in where.calls:
                    around = list(where.ancestors(call))
                    heads = [*(clause for up in around for clause in clauses(up)), *(up for up in around if isinstance(up, cst.For))]
                    if any(dotted(each.iter) == name and dotted(each.target) == dotted(call.func) for each in heads):
                        yield where, call
