"""Whether a set finds by its value all that a list holds and all that is looked for in it, as numbers, texts and tuples of such are.

A tensor is looked for by its value in a list, but by itself in a set; a list or a dictionary no set can hold at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.list_uses import ListUse, line_of, value_of
from trainflash.knobs.reading.plain_values import Kind, PlainValues, empty, said
from trainflash.knobs.reading.python_source import PythonFile


def known_by_value(project: Project, uses: Sequence[ListUse], name: str, picked: bool) -> None:
    """Raises `UsageError` where the source does not show that. `picked`: the list holds lists, of which one is searched.

    Among texts anything may be looked for: whatever is none is in neither.
    """
    values = PlainValues(project)
    declared = {kind for use in uses if use.does == "made" and (kind := _declared(use)) is not None}
    held = declared or set(_held(values, uses, name, picked))
    for use in uses:
        for item in _asked(use):
            if values.of(use.file, item) is None and held != {"text"}:
                what = short(use.file.text(item))
                raise refuse(f"{use.file.location(item)}: `{what}` may be a tensor or a list, which a set does not find by its value")


def _declared(use: ListUse) -> Kind | None:
    up = use.file.parent(use.node)
    return said(up.annotation, listed=True) if isinstance(up, cst.AnnAssign) else None


def _held(values: PlainValues, uses: Sequence[ListUse], name: str, picked: bool) -> Iterator[Kind]:
    for use in uses:
        for part in _parts(use, picked):
            kind = part if isinstance(part, str) else values.of(use.file, part[0]) if part[1] else values.entry(use.file, part[0])
            if kind is None:
                here, line = use.file.location(use.node), line_of(use)
                raise refuse(f"{here}: whether a set finds by its value what `{line}` puts into `{name}` is not known")
            yield kind


def _parts(use: ListUse, picked: bool) -> Iterator[Kind | tuple[cst.BaseExpression, bool]]:
    """What a use puts into the list: single values (True), or all that something holds."""
    if use.does == "added":
        method = use.file.parent(use.node)
        word = method.attr.value  # type: ignore[union-attr]
        for arg in use.file.parent(method).args:  # type: ignore[union-attr,arg-type]
            yield arg.value, word != "extend"
    value = value_of(use) if use.does == "made" else None
    if value is None or empty(value):
        return
    if not picked:
        yield value, False
        return
    rows = [each.value for each in value.elements] if isinstance(value, cst.List) else [value.elt]  # type: ignore[attr-defined]
    for row in rows:
        yield "number" if _numbers(row) else (row, False)


def _numbers(row: cst.BaseExpression) -> bool:
    """Whether a row is made of a tensor or an array: of numbers, or nobody could look for one in it."""
    return isinstance(row, cst.Call) and isinstance(row.func, cst.Attribute) and row.func.attr.value == "tolist"


def _asked(use: ListUse) -> Iterator[cst.BaseExpression]:
    """What is looked for at a use."""
    file: PythonFile = use.file
    up = file.parent(use.node)
    up = file.parent(up) if use.does == "picked" else up  # type: ignore[arg-type]
    if isinstance(up, cst.ComparisonTarget):
        yield file.parent(up).left  # type: ignore[union-attr]
