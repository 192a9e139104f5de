"""The setting that the program itself asks before it makes a call: `if config.trace: …` is switched where `trace` is typed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.watching import switched
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import GuardSetting
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers, sources
from trainflash.knobs.reading.expressions import conjuncts, refuse, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene, Target

GUARDS = (cst.If, cst.IfExp)
DEEPEST = 3  # own: callers of callers; a guard further out guards more than that call


def guard_setting(edit: GuardSetting, scene: Scene) -> tuple[Target, ...]:
    """The typed truth value that guards the call. Raises `UsageError` where there is none, or where it is read elsewhere too."""
    file, call = the_call(edit, scene)
    reasons = []
    for where, test in _guards(scene.project, file, call, DEEPEST):
        guard = where.parent(test)
        beside = switched.more(scene.project, where, guard, edit.calls) if not edit.enables and isinstance(guard, GUARDS) else None
        if beside is not None:
            reasons.append(beside)
            continue
        for part, on in _parts(test):
            try:
                source = sources.Resolver(scene.project, on is not edit.enables).source(where, part)
            except UsageError as bad:
                reasons.append(bad.message)
                continue
            reason = _unfit(source, on is not edit.enables)
            if reason is None:
                return (_target(where, test, source, on, edit.enables),)  # type: ignore[arg-type]
            reasons.append(f"{where.location(test)}: {reason}")
    raise refuse("; ".join(reasons) or f"{file.location(call)}: no setting is asked before `{short(file.text(call))}`")


def _target(file: PythonFile, test: cst.BaseExpression, source: Source, on: bool, wanted: bool) -> Target:
    def write(value: Any) -> Any:
        return source.write(value if on else not value)  # type: ignore[misc]

    return Target(file.location(test), not wanted, write, f"`{file.text(test)}` at {file.location(test)}, from {source.shown}")


def _unfit(source: Source | None, now: bool) -> str | None:
    if source is None or source.write is None or source.value is not now:
        return f"what is asked is nothing typed that is {now}"
    return source.shared_with(source.readers[0]).message if source.readers else None


def _guards(project: Project, file: PythonFile, node: cst.CSTNode, depth: int) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """Tests whose truth leads to `node`, innermost first; behind those of its function those around its one call."""
    below = node
    for up in file.ancestors(node):
        if isinstance(up, (cst.If, cst.IfExp)) and below is up.body:
            yield file, up.test
        if isinstance(up, cst.FunctionDef):
            called = callers.sites(project, file, up)
            if len(called) == 1 and depth > 0:
                yield from _guards(project, *called[0], depth - 1)
            return
        below = up


def _parts(test: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """What must hold for `test` to hold, each with the truth value that it must have."""
    for part in conjuncts(test):
        negated = isinstance(part, cst.UnaryOperation) and isinstance(part.operator, cst.Not)
        yield (part.expression, False) if negated else (part, True)  # type: ignore[attr-defined]
