"""What differs between workers that import the program anew and those that are forked: variables that changed since, and what is open."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import is_name, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, parameter_names
from trainflash.knobs.training import data_sets, early_handles

PROCESSES = {f"{module}.{name}" for module in ("multiprocessing", "torch.multiprocessing") for name in ("Manager", "Pool", "Process")}
PROCESSES |= {"concurrent.futures.ProcessPoolExecutor", "torch.multiprocessing.spawn"}
DEFAULTS = {"numpy.seterr", "torch.set_default_device", "torch.set_default_dtype", "torch.set_default_tensor_type"}
HANDED = ("__getstate__", "__reduce__", "__reduce_ex__", "__setstate__")  # run where an object is sent to a worker that begins anew


def same(project: Project, call: cst.Call, *, of_all: bool) -> None:
    """Raises `UsageError` where forked workers would see something else; `of_all`: the setting counts for all processes of the program."""
    for file in project.parsed() if of_all else ():
        for other in file.calls:
            if file.full_name(other.func) in PROCESSES:
                raise refuse(f"{file.location(other)}: `{short(file.text(other))}` starts a process in that way, too")
    early_handles.none(project, call)
    for name in HANDED:
        for file, function in project.functions(name):
            raise refuse(f"{file.location(function)}: {name} says what a worker is handed, and a forked one is handed nothing")
    for file in project.parsed():
        for other in file.calls:
            if file.full_name(other.func) in DEFAULTS and not _on_import(file, other):
                raise refuse(f"{file.location(other)}: `{short(file.text(other))}` would hold in forked workers, too")
    samples = list(callees.reached(project, data_sets.starts(project)))
    for file, function in samples:
        for name in sorted(_variables(file, function)):
            for where, node in _changed_later(project, file, name, samples):
                told = f"`{short(where.text(node))}` changes {name}, which samples are made of"
                raise refuse(f"{where.location(node)}: {told}: a worker that imports the program does not see it, and a forked one would")


def _variables(file: PythonFile, function: cst.FunctionDef) -> set[str]:
    """Variables of the module that a function reads."""
    own = given.bound(function.body) | parameter_names(function)
    read = {node.value for node in descendants(function.body, cst.Name) if is_name(file, node)}  # type: ignore[attr-defined,arg-type]
    return (read - own) & given.bound(file.module) - set(file.imported)


def _changed_later(project: Project, file: PythonFile, name: str, samples: list[Function]) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Where a variable of the module is set, changed or drawn from by what does not run when the program is imported."""
    inside = [function for _, function in samples]
    for where in project.parsed(name):
        if where is not file and name not in where.imported:
            continue
        for part in (*where.functions, *_guarded(where)):
            params = parameter_names(part) if isinstance(part, cst.FunctionDef) else set()
            declared = {item.name.value for node in descendants(part, cst.Global) for item in node.names}  # type: ignore[attr-defined]
            shadowed = isinstance(part, cst.FunctionDef) and name in given.bound(part.body) and name not in declared
            if any(part is each for each in inside) or name in params or shadowed:
                continue
            place = changes.changed(project, where, part.body, {name})
            sets = (node for node in descendants(part.body, cst.Assign) if name in given.bound(node))
            asked = (call for call in descendants(part.body, cst.Call) if _is_method(call, name) and _is_stream(file, name))  # type: ignore[arg-type]
            found = place or next(sets, None) or next(asked, None)
            if found is not None:
                yield where, found


def _is_method(call: cst.Call, name: str) -> bool:
    return isinstance(call.func, cst.Attribute) and dotted(call.func.value) == name


def _is_stream(file: PythonFile, name: str) -> bool:
    """Whether a variable holds random numbers or another iterator, which any method takes from."""
    made = (node.value for node in descendants(file.module, cst.Assign) if any(dotted(each.target) == name for each in node.targets))  # type: ignore[attr-defined]
    return any("random" in (file.full_name(each.func) or "").lower() for each in made if isinstance(each, cst.Call))


def _guarded(file: PythonFile) -> Iterator[cst.If]:
    """What runs only where the program is started, and not where a worker imports it."""
    for line in file.module.body:
        if isinstance(line, cst.If) and "__name__" in file.text(line.test):
            yield line


def _on_import(file: PythonFile, node: cst.CSTNode) -> bool:
    return file.function_around(node) is None and not any(file.inside(node, each) for each in _guarded(file))
