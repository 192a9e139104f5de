"""Where a run saw attention: the file and the line, and the one call there."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene
from trainflash.knobs.training import second_order
from trainflash.schema import Location


def attention_place(scene: Scene, otherwise: str, kind: str = "") -> tuple[PythonFile, Location]:
    """The owner's choice, else where the run saw attention (of that `kind`). Raises `UsageError`, which says `otherwise`, where that is not
    in the project's own source, or where a fused kernel could not be differentiated as often as the program does."""
    seen = scene.facts.get("attention")
    place = scene.at or (seen.location if seen is not None and kind in ("", seen.kind) else None)
    if place is None or not scene.project.owns(place):
        raise refuse(otherwise)
    second_order.none(scene.project)
    return scene.project.python(place.file), place


def only_call(file: PythonFile, place: Location, wanted: Callable[[cst.Call], bool], what: str) -> cst.Call:
    """The one `wanted` call at the line. Raises `UsageError`, which says `what` it is, where there is none, or more than one."""
    found = [call for call in file.calls if file.lines_of(call)[0] <= place.line <= file.lines_of(call)[1] and wanted(call)]
    if len(found) != 1:
        raise refuse(f"{place}: {'no' if not found else 'more than one'} call {what} at this line")
    return found[0]
