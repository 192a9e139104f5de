"""What a stream of samples does that a worker process would do otherwise: go on where it was, fill one buffer again, end in an error."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given, givers, purity, sharing
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import argument_node, given_to, passed, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, methods_of, parameter, sole
from trainflash.knobs.training import data_sets, pass_changes

ITERATORS = (purity.ITERATORS - {"open"}) | {"count", "cycle", "islice", "repeat"}  # files are asked for elsewhere
MADE_ONCE = ("torch.", "numpy.")  # what makes buffers; a list holds other things when it is filled again


def goes_on(project: Project) -> None:
    """Raises `UsageError` where a stream reads from an iterator that it holds: in a worker each pass begins with it as it was at first."""
    for file, owner in data_sets.classes(project):
        methods = {each.name.value: each for each in methods_of(owner)}
        if "__init__" not in methods or "__iter__" not in methods:
            continue
        inside = data_sets.sampled(project, file, owner)
        read = {dotted(node) for _, method in inside for node in descendants(method.body, cst.Attribute)}
        for node in descendants(methods["__init__"].body, cst.Assign):
            names = {dotted(each.target) or "" for each in node.targets}  # type: ignore[attr-defined]
            held = [name for name in sorted(names & read) if name.startswith("self.") and not _anew(methods["__iter__"], name)]
            if held and _is_iterator(project, file, owner, methods["__init__"], node.value):  # type: ignore[attr-defined]
                told = f"`{short(file.text(node))}`, which each pass goes on with"
                raise refuse(f"{file.location(node)}: {told}, and a worker would begin each with it as it was at first")


def _is_iterator(project: Project, file: PythonFile, owner: cst.ClassDef, begins: cst.FunctionDef, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.GeneratorExp):
        return True
    if isinstance(value, cst.Call):
        generators = (each for _, each in callees.meant(project, file, value) if any(True for _ in descendants(each.body, cst.Yield)))
        return callees.called_name(value).split(".")[-1] in ITERATORS or next(generators, None) is not None
    param = parameter(begins, dotted(value))
    for where, call in givers.named(project, owner.name.value) if param is not None else ():
        handed = passed(where, call, file, begins, param)  # type: ignore[arg-type]
        around = where.function_around(call)
        name = dotted(handed) or ""
        values = [handed] if isinstance(handed, (cst.Call, cst.GeneratorExp)) else []
        values += given_to(around or where.module, name) if name else []
        if any(not dotted(each) and _is_iterator(project, where, owner, begins, each) for each in values):
            return True
    return False


def _anew(method: cst.FunctionDef, name: str) -> bool:
    """Whether a pass begins with something new in the field."""
    lines = [sole(line) for line in method.body.body]
    return any(isinstance(each, cst.Assign) and any(dotted(target.target) == name for target in each.targets) for each in lines)


def hands_out_new(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where a stream hands out one buffer again and again, and nothing puts samples together to a batch of their own.

    What a worker sends is filled anew while it is on its way.
    """
    size = argument_node(file, call, "batch_size", 1)
    if (size is None or dotted(size) != "None") and argument_node(file, call, "collate_fn", 6) is None:
        return
    for where, owner in data_sets.classes(project):
        for place, method in data_sets.sampled(project, where, owner):
            for out in descendants(method.body, cst.Yield):
                for name in sorted(_buffers(place, method, out)):
                    shared = sharing.Shared(project, place, {name}).within(method.body)
                    told = [node for node in descendants(out, (cst.Name, cst.Attribute)) if shared.holds(node)]  # type: ignore[arg-type]
                    if told and changes.changed(project, place, method.body, {name}) is not None:
                        raise refuse(f"{place.location(out)}: `{name}` is handed out, and filled anew while a worker sends it")


def _buffers(file: PythonFile, method: cst.FunctionDef, out: cst.CSTNode) -> Iterator[str]:
    """Variables and fields that hold one tensor or array for all samples."""
    owner = file.class_of(method)
    anew = {name for loop in file.loops_around(out) for name in given.bound(loop)}
    for name in {dotted(node) or "" for node in descendants(method.body, (cst.Name, cst.Attribute))} - anew:
        made = given_to(owner if owner is not None and name.startswith("self.") else method.body, name) if name else []
        if any(isinstance(each, cst.Call) and (file.full_name(each.func) or "").startswith(MADE_ONCE) for each in made):
            yield name


def ends_in_no_error(project: Project, call: cst.Call) -> None:
    """Raises `UsageError` where the program catches an error that its data raise: a worker's comes with another text, or as another."""
    reached = [*callees.reached(project, data_sets.starts(project))]
    raised = {name for _, function in reached for name in _raised(function)} - {"StopIteration"}
    inside = {id(function) for _, function in reached}
    for file in project.parsed("try") if raised else ():
        for block in (node for node in file.nodes if isinstance(node, cst.Try)):
            caught = [each for each in block.handlers if each.type is not None and _catches(project, file, each, raised)]
            if caught and id(file.function_around(block)) not in inside and pass_changes.goes_through(project, file, block, call):
                told = f"`except {file.text(caught[0].type)}` catches what the data raise"  # type: ignore[arg-type]
                raise refuse(f"{file.location(caught[0])}: {told}, which comes out of a worker with another text, or as another error")


def _raised(function: cst.FunctionDef) -> Iterator[str]:
    for node in descendants(function.body, cst.Raise):
        error = node.exc.func if isinstance(node.exc, cst.Call) else node.exc  # type: ignore[attr-defined]
        if error is not None and dotted(error):
            yield (dotted(error) or "").split(".")[-1]


def _catches(project: Project, file: PythonFile, handler: cst.ExceptHandler, raised: set[str]) -> bool:
    kinds = [each.value for each in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    names = {(dotted(each) or "").split(".")[-1] for each in kinds}
    return bool(names & (raised | {base for name in raised for base in _bases(project, name)}) - {"Exception", "BaseException"})


def _bases(project: Project, name: str) -> Iterator[str]:
    for file in project.parsed(f"class {name}"):
        for node in file.nodes:
            if isinstance(node, cst.ClassDef) and node.name.value == name:
                yield from base_names(node)
