"""What a function opens and ends again, by `with` or by calls of its own; and how that is written where it is kept instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import without
from trainflash.knobs.reading.expressions import is_name
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.splices import Splice

CLOSING = "contextlib.closing"


@dataclass(frozen=True)
class Opened:
    """One call that opens; `item` is what stands behind `with`, else the calls `ended` end what an assignment named.

    Where a function hands out what it opens, `blocks` are the `with` of its callers.
    """

    file: PythonFile
    call: cst.Call
    name: str
    item: cst.BaseExpression | None = None
    ended: tuple[cst.Call, ...] = ()
    blocks: tuple[Opened, ...] = ()

    def uses(self) -> list[cst.Name]:
        """Where what was opened is used, in the order of the source; the names that bind and end it are no uses."""
        function = self.file.function_around(self.call)
        names: list[cst.Name] = [
            node
            for node in descendants(self.file.module if function is None else function.body, cst.Name)
            if node.value == self.name and is_name(self.file, node)  # type: ignore[attr-defined,arg-type,misc]
        ]
        binds = next(up for up in self.file.ancestors(self.call) if isinstance(up, (cst.WithItem, cst.Assign)))
        return [node for node in names if not any(self.file.inside(node, each) for each in (binds, *self.ended))]

    def kept(self, text: str) -> tuple[Splice, ...]:
        """The edit that takes what `text` gives, and does not end it."""
        if self.item is not None:
            spelled, needed = imports.reach(self.file, "contextlib", "nullcontext")
            return (*needed, Splice(self.file.path, *self.file.span(self.item), f"{spelled}({text})"))
        ends = without(self.file, [self.file.parent(each) for each in self.ended])  # type: ignore[misc]
        return (Splice(self.file.path, *self.file.span(self.call), text), *ends)


def opened(file: PythonFile, opens: Callable[[cst.Call], bool], ends: frozenset[str]) -> Iterator[Opened]:
    """What functions of `file` open by a call that `opens`, and end: by `with`, or by statements `name.END(…)`, END one of `ends`."""
    for call in file.calls:
        function = file.function_around(call)
        if function is None or not opens(call):
            continue
        up, whole = file.parent(call), call
        if isinstance(up, cst.Arg) and isinstance(outer := file.parent(up), cst.Call) and file.full_name(outer.func) == CLOSING:
            up, whole = file.parent(outer), outer
        if isinstance(up, cst.WithItem) and up.item is whole and up.asname is not None and isinstance(up.asname.name, cst.Name):
            yield Opened(file, call, up.asname.name.value, whole)
        elif isinstance(up, cst.Assign) and whole is call and len(up.targets) == 1 and isinstance(up.targets[0].target, cst.Name):
            name = up.targets[0].target.value
            ended = tuple(each for each in descendants(function.body, cst.Call) if _ends(file, each, name, ends))  # type: ignore[arg-type]
            if ended:
                yield Opened(file, call, name, None, ended)  # type: ignore[arg-type]


def _ends(file: PythonFile, call: cst.Call, name: str, ends: frozenset[str]) -> bool:
    plain = isinstance(call.func, cst.Attribute) and dotted(call.func.value) == name and call.func.attr.value in ends
    return plain and isinstance(file.parent(call), cst.Expr)
