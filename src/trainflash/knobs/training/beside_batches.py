"""What a program goes through beside the batches of a loader, or keeps by their numbers: it belongs to batches in their order."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects.sharing import Shared
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.training import evaluated

READ = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
NUMBERS = ("range", "count", "repeat")
SIDE_BY_SIDE = ("zip", "zip_longest", "map")


def none(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where something else is in step with the batches of the loader that `call` makes."""
    for shared, scope in evaluated.places(project, file, call):
        where = shared.file
        for node in descendants(scope, cst.Call):
            if callees.called_name(node) in SIDE_BY_SIDE and _beside(shared, node):  # type: ignore[arg-type]
                raise refuse(
                    f"{where.location(node)}: `{short(where.text(node))}` takes batches beside something else, in the order of both"
                )
        for node in descendants(scope, (cst.For, cst.CompFor)):
            for name in _numbers(shared, node):  # type: ignore[arg-type]
                for used in descendants(where.parent(node) if isinstance(node, cst.CompFor) else node, cst.Index):
                    if any(each.value == name for each in descendants(used, cst.Name)):  # type: ignore[attr-defined]
                        text = where.text(where.parent(where.parent(used)))  # type: ignore[arg-type]
                        raise refuse(f"{where.location(used)}: `{short(text)}` belongs to the batch of that number")


def _beside(shared: Shared, call: cst.Call) -> bool:
    """Whether a call goes through the loader together with more than numbers."""
    read = [_reads(shared, arg.value) for arg in call.args]
    others = [arg.value for arg, held in zip(call.args, read, strict=True) if not held]
    if callees.called_name(call) == "map":
        others = others[1:]
    return any(read) and (sum(read) > 1 or any(not _only_numbers(each) for each in others))


def _only_numbers(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and callees.called_name(node) in NUMBERS


def _numbers(shared: Shared, loop: cst.For | cst.CompFor) -> Iterator[str]:
    """The name that `enumerate` gives the number of a batch."""
    target = loop.target
    counts = any(
        callees.called_name(each) == "enumerate" and each.args and _reads(shared, each.args[0].value)  # type: ignore[arg-type,attr-defined]
        for each in descendants(loop.iter, cst.Call)
    )
    if counts and isinstance(target, (cst.Tuple, cst.List)) and isinstance(target.elements[0].value, cst.Name):
        yield target.elements[0].value.value


def _reads(shared: Shared, node: cst.BaseExpression) -> bool:
    return any(shared.holds(each) for each in descendants(node, READ))  # type: ignore[arg-type]
