"""Which function of the program joins samples into a training batch."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword
from trainflash.knobs.scene import Scene
from trainflash.knobs.training import loading

LOADER = CallArgument(loading.LOADERS, "batch_size", at="train_loader")
HANDED = ("data_collator", "collate_fn")


def collate_function(scene: Scene) -> tuple[PythonFile, cst.FunctionDef]:
    """The one that the run saw, else the one that the source names; without a loader, the function that makes the batches.

    Raises `UsageError` where the program has none, or several.
    """
    loader = scene.facts.get("train_loader")
    drawn = scene.facts.get("data_function")
    if loader is None and scene.at is None and drawn is not None and scene.project.owns(drawn):
        maker = scene.project.python(drawn.file)
        function = maker.function_at(drawn)
        if function is not None:
            return maker, function
    if loader is not None and scene.at is None and scene.project.owns(loader.collate_location):
        seen = scene.project.python(loader.collate_location.file)
        function = seen.function_at(loader.collate_location)
        if function is not None:
            return seen, function
    if loader is not None and scene.at is None and not scene.project.owns(loader.location):
        file, given = _handed_over(scene)
    else:
        file, call = the_call(LOADER, scene)
        given = keyword(call, "collate_fn")
    name = dotted(given.value.func if isinstance(given.value, cst.Call) else given.value) if given is not None else None
    if given is None or name is None:
        raise refuse(f"{file.path}: the loader has no collate function of its own")
    tail = name.split(".")[-1]
    found: list[tuple[PythonFile, cst.FunctionDef]] = []
    for where in scene.project.parsed(tail):
        for function in where.functions:
            owner = where.class_of(function)
            called = owner is not None and owner.name.value == tail and function.name.value == "__call__"
            if called or function.name.value == tail:
                found.append((where, function))
    if len(found) != 1:
        raise refuse(f"{file.location(given)}: {'no' if not found else 'more than one'} function {tail} in the program")
    return found[0]


def item_function(scene: Scene) -> tuple[PythonFile, cst.FunctionDef] | None:
    """The program's function that reads one sample for the training loader, where the run saw it."""
    loader = scene.facts.get("train_loader")
    place = loader.dataset_location if loader is not None else None
    if place is None or not scene.project.owns(place):
        return None
    file = scene.project.python(place.file)
    function = file.function_at(place)
    return None if function is None else (file, function)


def _handed_over(scene: Scene) -> tuple[PythonFile, cst.Arg]:
    """The one argument `data_collator=` or `collate_fn=` of the program, where a trainer makes the loader."""
    found = [
        (file, arg) for file in scene.project.parsed() for call in file.calls for name in HANDED if (arg := keyword(call, name)) is not None
    ]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} {' or '.join(HANDED)} is handed over in the program")
    return found[0]
