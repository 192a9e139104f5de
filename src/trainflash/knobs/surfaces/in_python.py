"""Environment variables that the program sets itself: where, when they still count, and what else reads them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value

# Libraries that load torch, after which its pools of threads take no notice of the environment.
TORCH = {"torch", "torchvision", "torchaudio", "lightning", "pytorch_lightning", "transformers", "accelerate", "timm", "peft", "diffusers"}
OF_THREADS = ("OMP_", "MKL_", "GOMP_", "KMP_", "OPENBLAS_")
SETS = ("set_num_threads", "set_num_interop_threads")
SHOWS = ("print", "debug", "info", "warning", "error")


def written(project: Project, name: str) -> Iterator[tuple[PythonFile, cst.BaseExpression, bool]]:
    """What `os.environ[name] = …` and `os.environ.setdefault(name, …)` give, and whether only where the variable has no value."""
    for file in project.parsed(name):
        for node in file.nodes:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    if _place(file, target.target) == name:
                        yield file, node.value, _where_unset(file, node, name)
            elif (
                isinstance(node, cst.Call)
                and file.full_name(node.func) == "os.environ.setdefault"
                and len(node.args) == 2
                and string_value(node.args[0].value) == name
            ):
                yield file, node.args[1].value, True


def counts(project: Project, file: PythonFile, node: cst.BaseExpression, name: str) -> None:
    """Raises `UsageError` where what is written at `node` comes behind the import of torch, or something else reads it, too."""
    if name.startswith(OF_THREADS) and (early := _loaded_before(project, file, node)) is not None:
        raise refuse(f"{file.location(node)}: {name} is set behind the import of torch at {early}, where it has no effect any more")
    for where in project.parsed(name):
        for text in where.nodes:
            if isinstance(text, cst.SimpleString) and string_value(text) == name and not _sets(where, text) and not _harmless(where, text):
                raise refuse(f"{where.location(text)}: {name} is read here, too")


def _place(file: PythonFile, target: cst.BaseExpression) -> str | None:
    if not isinstance(target, cst.Subscript) or file.full_name(target.value) != "os.environ" or len(target.slice) != 1:
        return None
    index = target.slice[0].slice
    return string_value(index.value) if isinstance(index, cst.Index) else None


def _where_unset(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    """Whether an `if "NAME" not in os.environ` stands around."""
    tests = [up.test for up in file.ancestors(node) if isinstance(up, cst.If)]
    return any(string_value(text) == name for test in tests for text in descendants(test, cst.SimpleString))  # type: ignore[arg-type]


def _sets(file: PythonFile, text: cst.CSTNode) -> bool:
    subscript = file.parent(file.parent(file.parent(text)))  # type: ignore[arg-type]
    if isinstance(subscript, cst.Subscript) and isinstance(file.parent(subscript), (cst.AssignTarget, cst.Del)):
        return True
    call = file.parent(file.parent(text))  # type: ignore[arg-type]
    return isinstance(call, cst.Call) and file.full_name(call.func) == "os.environ.setdefault" and isinstance(file.parent(call), cst.Expr)


def _harmless(file: PythonFile, text: cst.CSTNode) -> bool:
    """Whether a variable is only asked for whether it is set, shown, or set once more as torch's own number of threads."""
    for up in file.ancestors(text):
        if isinstance(up, cst.Comparison) and any(isinstance(each.operator, (cst.In, cst.NotIn)) for each in up.comparisons):
            return True
        if isinstance(up, cst.Call):
            name = callees.called_name(up)
            if name in SETS or (name in SHOWS and isinstance(file.parent(up), cst.Expr)):
                return True
        if isinstance(up, cst.BaseSmallStatement):
            return False
    return False


def _loaded_before(project: Project, file: PythonFile, node: cst.CSTNode):
    """Where torch is loaded in front of `node`: in its file, or, where that is no script of the command's, in the script."""
    function = file.function_around(node)
    for place, line in _imports(file):
        early = file.function_around(line) is None if function is not None else file.span(line)[0] < file.span(node)[0]
        if early and _loads(project, file, line, set()):
            return place
    if file.path == project.entry or project.entry is None:
        return None
    entry = project.python(project.entry)
    for place, line in _imports(entry):
        if entry.function_around(line) is not None:
            continue
        if _leads_to(project, entry, line, file, set()):
            return None
        if _loads(project, entry, line, set()):
            return place
    return None


def _imports(file: PythonFile):
    return [(file.location(node), node) for node in file.each((cst.Import, cst.ImportFrom))]


def _modules(line: cst.CSTNode) -> list[str]:
    if isinstance(line, cst.Import):
        return [dotted(each.name) or "" for each in line.names]
    assert isinstance(line, cst.ImportFrom)
    return [dotted(line.module) or ""] if line.module is not None and not line.relative else []


def _own(project: Project, file: PythonFile, line: cst.CSTNode) -> list[PythonFile]:
    """Files of the program that a line of imports loads."""
    if all(name.split(".")[0] in sys.stdlib_module_names for name in _modules(line)) and _modules(line):
        return []
    found = project.loaded_by(file, line)
    return [project.python(path) for path in found]


def _loads(project: Project, file: PythonFile, line: cst.CSTNode, seen: set[str]) -> bool:
    if any(name.split(".")[0] in TORCH for name in _modules(line)):
        return True
    for other in _own(project, file, line):
        if other.path in seen:
            continue
        seen.add(other.path)
        if any(other.function_around(each) is None and _loads(project, other, each, seen) for _, each in _imports(other)):
            return True
    return False


def _leads_to(project: Project, file: PythonFile, line: cst.CSTNode, wanted: PythonFile, seen: set[str]) -> bool:
    for other in _own(project, file, line):
        if other.path == wanted.path:
            return True
        if other.path not in seen:
            seen.add(other.path)
            if any(_leads_to(project, other, each, wanted, seen) for _, each in _imports(other)):
                return True
    return False
