"""What else a setting decides that switches a watch: the block under it, and what runs in its place."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import guarded, harmless
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import UNKNOWN, is_name, literal, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, targets_of

NOTHING = "contextlib.nullcontext"


def more(project: Project, file: PythonFile, guard: cst.If | cst.IfExp, calls: tuple[str, ...]) -> str | None:
    """What the condition decides beside the watch; None where that is all."""
    if isinstance(guard, cst.IfExp):
        return (
            None if _nothing(file, guard.orelse) else f"{file.location(guard)}: `{short(file.text(guard.orelse))}` would run in its place"
        )
    body = list(guard.body.body)
    if guard.orelse is not None:
        twin = next((each for each in body if isinstance(each, cst.With) and _same(file, each.body, guard.orelse)), None)
        if twin is None and not _sets_nothing(file, guard.orelse):
            return f"{file.location(guard)}: what stands under `else` would run in place of this block"
        body = [each for each in body if each is not twin]
    return _block(project, file, guard, body, calls, set())


def _block(
    project: Project, file: PythonFile, guard: cst.If, body: list[cst.CSTNode], calls: tuple[str, ...], seen: set[int]
) -> str | None:
    seen.add(id(guard))
    for part in body:
        for call in descendants(part, cst.Call):
            name = callees.called_name(call)  # type: ignore[arg-type]
            if name in guarded.SEEDS or harmless.draws(file, call):  # type: ignore[arg-type]
                return f"{file.location(call)}: the same condition guards `{short(file.text(call))}`, which decides what is drawn next"
    around = file.function_around(guard) or file.module
    names = _watches(file, body, calls)
    reads = [node for node in descendants(around, cst.Name) if node.value in names and is_name(file, node)]  # type: ignore[attr-defined,arg-type]
    for node in reads:
        asks = next((up for up in file.ancestors(node) if isinstance(up, cst.If) and file.inside(node, up.test)), None)
        if asks is not None and id(asks) not in seen and not file.inside(guard, asks):
            if asks.orelse is not None:
                return f"{file.location(asks)}: what stands under `else` would run in place of this block"
            if (reason := _block(project, file, asks, list(asks.body.body), calls, seen)) is not None:
                return reason
    return guarded.Guarded(project, file, guard, tuple(body), rest=False, readers=tuple(reads), exact=True).obstacle() if body else None


def _watches(file: PythonFile, body: list[cst.CSTNode], calls: tuple[str, ...]) -> set[str]:
    """Names that the block gives to what it watches by."""
    found = set()
    for part in body:
        for node in descendants(part, cst.Assign):
            made = any(file.full_name(call.func) in calls for call in descendants(node.value, cst.Call))  # type: ignore[attr-defined]
            found |= {each.value for each in targets_of(node) if made and isinstance(each, cst.Name)}
    return found


def _same(file: PythonFile, block: cst.BaseSuite, other: cst.CSTNode) -> bool:
    """Whether both blocks say the same."""
    if not isinstance(other, cst.Else):
        return False
    return _said(file, block) == _said(file, other.body)


def _said(file: PythonFile, block: cst.BaseSuite) -> list[str]:
    return [" ".join(file.text(each).split()) for each in block.body]


def _sets_nothing(file: PythonFile, other: cst.CSTNode) -> bool:
    """Whether an `else` does nothing but name a watch that is none."""
    if not isinstance(other, cst.Else):
        return False
    smalls = [small for line in other.body.body for small in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])]
    return all(isinstance(each, cst.Pass) or (isinstance(each, cst.Assign) and _nothing(file, each.value)) for each in smalls)


def _nothing(file: PythonFile, node: cst.BaseExpression) -> bool:
    called = file.full_name(node.func) if isinstance(node, cst.Call) else ""
    return literal(node) is not UNKNOWN or called in (NOTHING, "nullcontext") or dotted(node) == "None"
