"""Edits of what a program does to Python's garbage collector: settings that make it work more."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.statements import taken_away
from trainflash.knobs.effects import collected
from trainflash.knobs.kinds import CollectorSettings
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import no_place, refuse
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene, Target

DEFAULTS = (700, 10, 10)  # of gc.set_threshold up to Python 3.12: https://docs.python.org/3/library/gc.html; later ones are higher
TAKEN_AWAY = "taken away"


def collector_settings(edit: CollectorSettings, scene: Scene) -> tuple[Target, ...]:
    """The statement that makes the collector run more often, or tell of what it does. Raises `UsageError` where it is not one alone."""
    found = [(file, call) for file in scene.project.parsed("gc") for call in file.calls if file.full_name(call.func) in edit.calls]
    if not found:
        raise no_place(f"no call of {' or '.join(name.split('.')[-1] for name in edit.calls)}: the collector is as Python sets it")
    if len(found) > 1:
        raise refuse(f"the collector is set at several places: {', '.join(str(file.location(call)) for file, call in found[:4])}")
    file, call = found[0]
    here = file.location(call)
    if file.full_name(call.func) == "gc.set_threshold":
        _lower(scene, file, call)
    for other in scene.project.parsed("gc"):
        for node in other.nodes:
            full = other.full_name(node) if isinstance(node, (cst.Attribute, cst.Name)) else None
            if full in collected.TOLD and not isinstance(other.parent(node), cst.ImportAlias):
                raise refuse(f"{other.location(node)}: `{other.text(node)}` tells of the collections, which would be others")
            if full == "gc.garbage":
                raise refuse(f"{other.location(node)}: gc.garbage is read, which depends on how the collector is set")
    splices = taken_away(file, call)
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", TAKEN_AWAY),)


def _lower(scene: Scene, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` unless the thresholds are known, some lower than Python's own and none higher."""
    here, values = file.location(call), [_number(scene, file, arg) for arg in call.args]
    if not values or any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise refuse(f"{here}: what `{file.text(call)}` sets is computed")
    pairs = list(zip(values, DEFAULTS, strict=False))
    if values[0] == 0:
        raise refuse(f"{here}: `{file.text(call)}` switches automatic collections off")
    if any(value > default for value, default in pairs) or all(value == default for value, default in pairs):
        raise refuse(f"{here}: `{file.text(call)}` does not make collections more frequent than Python does")


def _number(scene: Scene, file: PythonFile, arg: cst.Arg) -> Any:
    try:
        source = sources.Resolver(scene.project).source(file, arg.value) if not arg.star and arg.keyword is None else None
    except UsageError:
        return None
    return source.value if source is not None else None
