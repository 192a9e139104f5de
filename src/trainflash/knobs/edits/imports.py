"""Imports that an edit needs: used where they are there already, else added once, in order, in the first block of imports."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted, string_value, targets_of
from trainflash.knobs.splices import Splice

WITH_TORCH = (
    *("torch.nn.functional", "torch.nn", "torch.optim", "torch.utils.data", "torch.backends.cudnn"),
    *("torch.amp", "torch.autograd", "torch.linalg", "torch.profiler"),
)
ENVIRONMENT = ("environ", "putenv", "load_dotenv")
CHANGES = ("os.putenv", "os.unsetenv", *(f"os.environ.{name}" for name in ("setdefault", "update", "pop", "clear", "__setitem__")))
BINDS = (cst.AssignTarget, cst.Param, cst.FunctionDef)


def reach(file: PythonFile, module: str, name: str) -> tuple[str, tuple[Splice, ...]]:
    """How this file spells `module.name`, and the edit that makes it so. Raises `UsageError` when the name is taken."""
    lines = list(_imports(file))
    for line in lines:
        for node in line.body:
            if (
                isinstance(node, cst.ImportFrom)
                and dotted(node.module) == module
                and not node.relative
                and not isinstance(node.names, cst.ImportStar)
            ):
                for alias in node.names:
                    if alias.evaluated_name == name:
                        return alias.evaluated_alias or name, ()
    near = [
        (alias.evaluated_alias or alias.evaluated_name, f"{dotted(node.module)}.{alias.evaluated_name}")
        for line in lines
        for node in line.body
        if isinstance(node, cst.ImportFrom) and node.module and not node.relative and not isinstance(node.names, cst.ImportStar)
        for alias in node.names
    ]
    for line in lines:
        for node in line.body:
            if isinstance(node, cst.Import):
                for alias in node.names:
                    full = dotted(alias.name) or ""
                    near.append((alias.evaluated_alias or full, full))
                    if not alias.asname:
                        near.append((full.split(".")[0], full.split(".")[0]))
    reached = [(local, full) for local, full in near if module == full or (module.startswith(f"{full}.") and _loaded(full, module))]
    if reached:
        local, full = max(reached, key=lambda pair: len(pair[1]))
        return f"{local}{module[len(full) :]}.{name}", ()
    root = module.split(".")[0]
    for node in file.nodes:
        if isinstance(node, cst.Name) and node.value == root and isinstance(file.parent(node), BINDS):
            raise refuse(f"{file.location(node)}: the name {root} means something else in this file")
    if file.imported.get(root, root) != root:  # `from copy import copy`: `import copy` would take its place
        if any(node.value == name for node in file.each(cst.Name)):
            raise refuse(f"the names {root} and {name} mean something else in {file.path}")
        return name, (_added(file, lines, module, f"from {module} import {name}"),)
    return f"{module}.{name}", (_added(file, lines, module, f"import {module}"),)


def loads_nothing_early(project: Project, module: str) -> None:
    """Raises `UsageError` where the program sets its environment: `module`, loaded in front of that, would not see what it says."""
    if module.split(".")[0] in sys.stdlib_module_names:
        return
    for word in ENVIRONMENT:
        for file in project.parsed(word):
            for node in file.nodes:
                if isinstance(node, (cst.Assign, cst.AugAssign, cst.Del, cst.Call)) and _sets_environment(file, node):
                    early = f"loading {module.split('.')[0]} in front of it may not see it"
                    raise refuse(f"{file.location(node)}: the environment is set here, and {early}")


def _sets_environment(file: PythonFile, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        full = file.full_name(node.func) or ""
        return full in CHANGES or full.split(".")[-1] == "load_dotenv"
    return any(isinstance(each, cst.Subscript) and file.full_name(each.value) == "os.environ" for each in targets_of(node))


def _loaded(package: str, module: str) -> bool:
    """Whether importing `package` also loads `module` below it."""
    return package.split(".")[0] == "torch" and module in WITH_TORCH


def after_imports(file: PythonFile, spelled: str = "") -> int:
    """The offset behind the imports at the head of the file, and behind the one that binds what `spelled` begins with; else behind its
    docstring."""
    lines = list(_head_imports(file))
    lines += [line for line in _imports(file) if line not in lines and spelled.split(".")[0] in _bound(line)]
    return _line_end(file, file.span(lines[-1])[1]) if lines else _at_head(file, "").start


def _bound(line: cst.SimpleStatementLine) -> set[str]:
    """Names that a line of imports binds."""
    aliases = [alias for node in line.body if not isinstance(getattr(node, "names", None), cst.ImportStar) for alias in node.names]  # type: ignore[union-attr]
    return {alias.evaluated_alias or alias.evaluated_name.split(".")[0] for alias in aliases}


def _imports(file: PythonFile) -> Iterator[cst.SimpleStatementLine]:
    """Lines of imports in front of the first function, class or loop, whatever stands between them."""
    for line in file.module.body:
        if isinstance(line, (cst.FunctionDef, cst.ClassDef, cst.For, cst.While, cst.With)):
            return
        if isinstance(line, cst.SimpleStatementLine) and all(isinstance(node, (cst.Import, cst.ImportFrom)) for node in line.body):
            first = line.body[0]
            if not (isinstance(first, cst.ImportFrom) and dotted(first.module) == "__future__"):
                yield line


def _packages(line: cst.SimpleStatementLine) -> set[str]:
    """Root packages that a line of imports loads."""
    modules = [dotted(node.module) for node in line.body if isinstance(node, cst.ImportFrom) and node.module]
    modules += [dotted(alias.name) for node in line.body if isinstance(node, cst.Import) for alias in node.names]
    return {module.split(".")[0] for module in modules if module}


def _head_imports(file: PythonFile) -> Iterator[cst.SimpleStatementLine]:
    """Lines of imports at the head of the file: behind docstring and `__future__`, up to the last one that no other code precedes."""
    for line in file.module.body:
        if not isinstance(line, cst.SimpleStatementLine):
            return
        first = line.body[0]
        if isinstance(first, cst.Expr) and string_value(first.value) is not None:
            continue
        if not all(isinstance(node, (cst.Import, cst.ImportFrom)) for node in line.body):
            return
        if isinstance(first, cst.ImportFrom) and dotted(first.module) == "__future__":
            continue
        yield line


def _added(file: PythonFile, lines: list[cst.SimpleStatementLine], module: str, said: str) -> Splice:
    """The import `said` in the first block of `lines`, or beside a later one of the same package: what precedes that may matter."""
    statement = f"{said}{file.newline}"
    if not lines:
        return _at_head(file, statement)
    beside = [line for line in lines if module.split(".")[0] in _packages(line)]
    if beside and beside[0] not in list(_head_imports(file)):
        offset = _line_end(file, file.span(beside[0])[1])
        return Splice(file.path, offset, offset, statement)
    block = [lines[0]]
    for line in lines[1:]:
        if any(empty.comment is None for empty in line.leading_lines):
            break
        block.append(line)
    for line in block:
        first = line.body[0]
        if isinstance(first, cst.ImportFrom) or (dotted(first.names[0].name) or "") > module:
            offset = _line_start(file, file.span(line)[0])
            return Splice(file.path, offset, offset, statement)
    offset = _line_end(file, file.span(block[-1])[1])
    return Splice(file.path, offset, offset, statement)


def _at_head(file: PythonFile, statement: str) -> Splice:
    """Behind docstring, `__future__` imports and leading comments of a file without imports."""
    head = [
        line
        for line in file.module.body[:3]
        if isinstance(line, cst.SimpleStatementLine)
        and (
            (isinstance(line.body[0], cst.Expr) and string_value(line.body[0].value) is not None)
            or (isinstance(line.body[0], cst.ImportFrom) and dotted(line.body[0].module) == "__future__")
        )
    ]
    if head:
        offset = _line_end(file, file.span(head[-1])[1])
        return Splice(file.path, offset, offset, f"{file.newline}{statement}")
    if not file.module.body:
        return Splice(file.path, len(file.raw), len(file.raw), statement)
    first = file.module.body[0]
    start = min(file.span(node)[0] for node in (first, *getattr(first, "decorators", ())))
    offset = _line_start(file, start)
    return Splice(file.path, offset, offset, f"{statement}{file.newline}")


def _line_start(file: PythonFile, offset: int) -> int:
    head = 3 if file.raw.startswith(b"\xef\xbb\xbf") else 0
    return max(head, file.raw.rfind(b"\n", 0, offset) + 1)


def _line_end(file: PythonFile, offset: int) -> int:
    found = file.raw.find(b"\n", offset)
    return len(file.raw) if found < 0 else found + 1
