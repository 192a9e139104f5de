"""What worker processes see of the program: a copy of the data set as it was when they began, and the program itself, imported anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    LOOPS,
    PythonFile,
    decorator_names,
    descendants,
    dotted,
    keyword,
    methods_of,
    string_value,
    targets_of,
    unsubscripted,
)
from trainflash.knobs.training import data_sets, worker_copies

CHANGES = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "setdefault", "shuffle", "sort", "update"}
CHANGING = (*ASSIGNS, cst.Call)
FRESH = ("spawn", "forkserver")  # workers of these import the program
FORKSERVER_SINCE = (3, 14)  # https://docs.python.org/3.14/library/multiprocessing.html: the default on Linux


def kept(project: Project) -> None:
    """Raises `UsageError` where the training changes what its data set reads: kept workers would go on with what was there at first."""
    for where, node, told in changed(project):
        raise refuse(f"{where.location(node)}: {told}, and kept workers hold a copy")
    for owner in data_sets.classes(project):
        worker_copies.counts_nothing(owner)


def changed(project: Project, *, samplers: bool = False) -> Iterator[tuple[PythonFile, cst.CSTNode, str]]:
    """Where the program changes what its data sets read, and how; with `samplers` what those read, too."""
    owners = list(data_sets.classes(project, samplers=samplers))
    changes = list(_changes(project)) if owners else []
    own = {each.name.value for _, owner in owners for _, each in data_sets.family(project, owner)}
    for file, owner in owners:
        read = _read(file, owner)
        for where, node, name in changes:
            if name in read and not where.inside(node, owner) and not _of_others(project, where, node, own):
                yield where, node, f"`{where.text(node)}` changes what {owner.name.value} reads"
        for method in methods_of(owner):
            set_there = read & _changed(method)
            if not set_there or method.name.value.startswith("__"):
                continue
            for where, call in _calls(project, method.name.value, samplers):
                if not where.inside(call, owner):
                    yield where, call, f"`{where.text(call.func)}` changes {min(set_there)}, which {owner.name.value} reads"
    for file, part in (*owners, *data_sets.functions(project)):
        for name in descendants(part, cst.Name):
            for where, node in _set_again(project, file, part, name):  # type: ignore[arg-type]
                yield where, node, f"{name.value} is set again while the program runs"  # type: ignore[attr-defined]
    for where, node in worker_copies.handed_over(project, owners):
        yield where, node, f"`{short(where.text(node))}` changes what a data set reads"


def of_one_pass(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the call makes a loader for one pass alone, whose workers end with it however they are kept."""
    function = file.function_around(call)
    asked = function is not None and decorator_names(file, function) == ["property"]
    returned = function is not None and isinstance(file.parent(call), cst.Return)
    sites = callers.sites(project, file, function) if returned else [(file, call)]  # type: ignore[arg-type]
    if asked or any(_gone_through_once(where, site) for where, site in sites):
        raise refuse(f"{file.location(call)}: each pass makes a loader of its own, and its workers end with it")


def _gone_through_once(file: PythonFile, made: cst.CSTNode) -> bool:
    """Whether what is made here is gone through by the loop whose head it stands in, or by one in the loop that makes it again."""
    around = list(file.loops_around(made))
    if any(isinstance(up, cst.For) and file.inside(made, up.iter) for up in around):
        return True
    line = file.parent(made)
    name = dotted(line.targets[0].target) if isinstance(line, cst.Assign) else None
    passes = descendants(around[0].body, cst.For) if around and name is not None else ()
    through = [each for each in passes if any(dotted(node) == name for node in descendants(each.iter, (cst.Name, cst.Attribute)))]  # type: ignore[attr-defined]
    return any(next(iter(file.loops_around(each)), None) is around[0] for each in through)


def _read(file: PythonFile, owner: cst.ClassDef) -> set[str]:
    """Fields that methods other than the constructor read."""
    return {
        node.attr.value
        for method in owner.body.body
        if isinstance(method, cst.FunctionDef) and method.name.value not in ("__init__", "__len__")
        for node in descendants(method.body, cst.Attribute)
        if dotted(node.value) == "self" and not isinstance(file.parent(node), (cst.AssignTarget, cst.AnnAssign))
    } - {each.name.value for each in methods_of(owner)}


def _changes(project: Project) -> Iterator[tuple[PythonFile, cst.CSTNode, str]]:
    """Changes of a field of some object, other than a method's own, in loops and functions: the field's name."""
    for file in project.parsed():
        for node in file.each(CHANGING):
            for target in _changed_by(node):
                name = _field(target)
                if name and not (dotted(target) or "").endswith(".value") and _later(file, node) and not _own(target):
                    yield file, node, name


def _of_others(project: Project, file: PythonFile, node: cst.CSTNode, own: set[str]) -> bool:
    """Whether all fields that a statement or call changes are those of objects of other classes."""
    bases = []
    for target in _changed_by(node):
        held = unsubscripted(target)
        bases += [dotted(held.value)] if isinstance(held, cst.Attribute) else []
    return bool(bases) and all(base is not None and data_sets.is_other(project, file, node, base, own) for base in bases)


def _changed_by(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What a statement or a call changes."""
    if isinstance(node, ASSIGNS):
        return targets_of(node)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in CHANGES:
        return [node.func.value, *(arg.value for arg in node.args if node.func.attr.value == "shuffle")]
    return []


def _field(target: cst.BaseExpression) -> str:
    """The last field in `x.field`, `x.field[i]`; empty for a plain name."""
    held = unsubscripted(target)
    return held.attr.value if isinstance(held, cst.Attribute) else ""


def _own(target: cst.BaseExpression) -> bool:
    """Whether it is a field of the method's own object."""
    held = unsubscripted(target)
    return isinstance(held, cst.Attribute) and dotted(held.value) == "self"


def _later(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` may run after the first pass over the data: in a loop, or in a function that is no constructor."""
    for up in file.ancestors(node):
        if isinstance(up, LOOPS):
            return True
        if isinstance(up, cst.FunctionDef):
            return up.name.value not in ("__init__", "main") and not up.name.value.startswith(("make", "build", "get", "create", "load"))
    return False


def _changed(method: cst.FunctionDef) -> set[str]:
    """Fields of its own object that a method changes."""
    return {_field(target) for node in descendants(method.body, CHANGING) for target in _changed_by(node) if _own(target)}


def _calls(project: Project, name: str, samplers: bool) -> Iterator[tuple[PythonFile, cst.Call]]:
    """Calls of a method of that name in loops and functions, of a sampler's aside unless those count."""
    for file in project.parsed(f".{name}"):
        for call in file.calls:
            method = isinstance(call.func, cst.Attribute) and call.func.attr.value == name
            if method and (samplers or "sampler" not in (dotted(call.func) or "").lower()) and _later(file, call):
                yield file, call


def _set_again(project: Project, file: PythonFile, part: cst.CSTNode, name: cst.Name) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Where a variable of the module that a function in `part` reads is set in a loop, or by a function that the training calls."""
    up = file.parent(name)
    inside = next((each for each in file.ancestors(name) if isinstance(each, cst.FunctionDef)), None)
    scope = file.scope(name)
    named = isinstance(up, (cst.Attribute, cst.Arg, cst.Param)) and getattr(up, "value", None) is not name
    if inside is None or scope is None or named:
        return
    for each in scope[name.value]:
        place = getattr(each, "node", None)
        if not isinstance(place, cst.Name) or each.scope is not file.scope(file.module) or file.inside(place, inside):
            continue
        setter = next((around for around in file.ancestors(place) if isinstance(around, (*LOOPS, cst.FunctionDef))), None)
        if isinstance(setter, LOOPS):
            yield file, place
        elif setter is not None:
            sites = callers.sites(project, file, setter)
            yield from ((where, call) for where, call in sites if _later(where, call) and not where.inside(call, part))


def begins_anew(project: Project, file: PythonFile, call: cst.Call, python: str | None) -> None:
    """Raises `UsageError` where new workers would run the whole program again, or cannot be handed what the loader is made of."""
    asked = _asked(project, file, call)
    version = tuple(int(part) for part in (python or "").split(".")[:2] if part.isdigit())
    if asked is None and sys.platform == "linux" and version < FORKSERVER_SINCE:
        return
    where = f"{file.location(call)}: Python {python} on this system starts workers anew" if asked is None else asked
    entry = project.python(project.entry) if project.entry is not None else None
    if entry is not None and not _guarded(entry):
        raise refuse(f'{where}: each imports {entry.path}, which has no `if __name__ == "__main__":` and would train in each worker')
    again = _sets_again(entry) if entry is not None else None
    if again is not None:
        raise refuse(f"{where}: each imports {entry.path}, which would call `{entry.text(again)}` a second time")  # type: ignore[union-attr]
    if any(descendants(call, cst.Lambda)):
        raise refuse(f"{where}: each is handed what the loader is made of, and a lambda cannot be")


def _asked(project: Project, file: PythonFile, call: cst.Call) -> str | None:
    """Where the program asks for workers that begin anew."""
    given = keyword(call, "multiprocessing_context")
    places = [(file, given.value)] if given is not None else []
    places += [
        (where, each)
        for where in project.parsed("set_start_method")
        for each in where.calls
        if (where.full_name(each.func) or "").split(".")[-1] == "set_start_method"
    ]
    for where, node in places:
        if any(string_value(text) in FRESH for text in descendants(node, cst.SimpleString)):
            return f"{where.location(node)}: `{where.text(node)}` starts workers anew"
    return None


def _sets_again(entry: PythonFile) -> cst.Call | None:
    """A call of `set_start_method` that runs when the program is imported, which Python allows once only."""
    for call in entry.calls:
        within = any(isinstance(up, (cst.FunctionDef, cst.If)) for up in entry.ancestors(call))
        if (entry.full_name(call.func) or "").endswith("set_start_method") and not within and keyword(call, "force") is None:
            return call
    return None


def _guarded(file: PythonFile) -> bool:
    return any(
        isinstance(node, cst.Comparison) and dotted(node.left) == "__name__" and isinstance(file.parent(node), cst.If)
        for node in file.nodes
    )
