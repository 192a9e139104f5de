"""Where a run saw attention: the file and the line."""

from __future__ import annotations

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
