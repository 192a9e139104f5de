"""Where a program goes through the batches that a generator makes: the loops, by all names that the batches get on the way there."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import givers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, placed_parameters, targets_of

AROUND = {"iter", "enumerate", "islice", "zip", "chain", "cycle", "map", "tqdm", "trange", "track"}  # go through what they are handed
DEEPEST = 3  # own: functions between two places
MOST = 5  # own: names that lead to names

Place = tuple[PythonFile, cst.CSTNode]


def places(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[Place]:
    """Loops over the batches and calls of `next` that take one."""
    known = names(project, file, function)
    found: list[Place] = []
    for where in project.parsed():
        for node in where.nodes:
            if isinstance(node, (cst.For, cst.CompFor)):
                taken = node.iter
            else:
                taken = node.args[0].value if isinstance(node, cst.Call) and dotted(node.func) == "next" and node.args else None
            if taken is not None and _means(where, taken, known) and not where.inside(node, function):
                found.append((where, node))
    return found


def names(project: Project, file: PythonFile, function: cst.FunctionDef) -> set[str]:
    """The last names of the generator, its class, what is made of them, and the parameters that are handed it."""
    owner = file.class_of(function)
    known = {function.name.value} if not function.name.value.startswith("__") else set()
    known |= {owner.name.value} if owner is not None else set()
    for _ in range(MOST):
        more = set(_further(project, known))
        if more <= known:
            break
        known |= more
    return known


def _further(project: Project, known: set[str]) -> Iterator[str]:
    for where in project.parsed():
        for node in where.nodes:
            if isinstance(node, (cst.Assign, cst.AnnAssign)) and node.value is not None and _means(where, node.value, known):
                yield from ((dotted(target) or "").split(".")[-1] for target in targets_of(node) if dotted(target))
            elif isinstance(node, cst.Call):
                handed = [(number, arg) for number, arg in enumerate(node.args) if _means(where, arg.value, known)]
                for there, each in callees.meant(project, where, node) if handed else ():
                    yield from _parameters(there, each, handed)


def _parameters(file: PythonFile, function: cst.FunctionDef, handed: list[tuple[int, cst.Arg]]) -> Iterator[str]:
    params = [param.name.value for param in placed_parameters(function)]
    params = params[1:] if file.class_of(function) is not None and params[:1] in (["self"], ["cls"]) else params
    for number, arg in handed:
        if arg.keyword is not None:
            yield arg.keyword.value
        elif number < len(params):
            yield params[number]


def _means(file: PythonFile, node: cst.BaseExpression, known: set[str]) -> bool:
    """Whether an expression is one of those things, or goes through one."""
    if isinstance(node, cst.Call):
        name = callees.called_name(node)
        return name in known or (name.split(".")[-1] in AROUND and any(_means(file, arg.value, known) for arg in node.args))
    if isinstance(node, (cst.IfExp, cst.BooleanOperation)):
        parts = (node.body, node.orelse) if isinstance(node, cst.IfExp) else (node.left, node.right)
        return any(_means(file, each, known) for each in parts)
    return (dotted(node) or "").split(".")[-1] in known


def repeated(project: Project, file: PythonFile, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether `node` may run more than once: in a loop, or in a function that is called so."""
    if any(not (isinstance(loop, cst.For) and file.inside(node, loop.iter)) for loop in file.loops_around(node)):
        return True
    function = file.function_around(node)
    sites = callers.sites(project, file, function) if function is not None and depth < DEEPEST else []
    return len(sites) > 1 or any(repeated(project, where, site, depth + 1) for where, site in sites)


def cut_short(project: Project, file: PythonFile, function: cst.FunctionDef) -> Place | None:
    """Where the batches are left before their end, if they are begun more than once: the next time goes on with what is left."""
    found = places(project, file, function)
    early = next((place for place in found if left(*place)), None)
    if early is None:
        return None
    if function.name.value.startswith("__"):
        known = names(project, file, function)
        begun = [place for place in found if not isinstance(place[1], cst.Call)]
        begun += [(where, call) for where in project.parsed("iter(") for call in where.calls if _begins(where, call, known)]
    else:
        begun = list(givers.makers(project, file, function))
    return early if len(begun) > 1 or any(repeated(project, *place) for place in begun) else None


def _begins(file: PythonFile, call: cst.Call, known: set[str]) -> bool:
    return dotted(call.func) == "iter" and _means(file, call, known)


def left(file: PythonFile, loop: cst.CSTNode) -> bool:
    """Whether a loop may end before what it goes through does; whoever takes one by `next` always may."""
    if not isinstance(loop, cst.For):
        return not isinstance(loop, cst.CompFor)
    cut = any(callees.called_name(call) in ("zip", "islice") for call in descendants(loop.iter, cst.Call))  # type: ignore[arg-type]
    ends = descendants(loop.body, (cst.Break, cst.Return))
    return cut or any(isinstance(each, cst.Return) or next(file.loops_around(each)) is loop for each in ends)
