"""Which function of the program joins samples into a training batch."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.calls import insertion
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, positional, string_value
from trainflash.knobs.scene import Scene
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import loading
from trainflash.schema import Location

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


def batch_maker(project: Project, place: Location | None) -> tuple[PythonFile, cst.FunctionDef]:
    """The function at `place` that makes the batches, where a decorator may go around it. Raises `UsageError` where none stands there."""
    if place is None or not project.owns(place):
        raise refuse("no function of this project's own source makes the batches")
    file = project.python(place.file)
    function = file.function_at(place)
    if function is None:
        raise refuse(f"{place}: no function stands there")
    if function.decorators:
        raise refuse(f"{file.location(function)}: what the decorators of {function.name.value} make of it is not known")
    return file, function


def own_collate(scene: Scene, file: PythonFile, call: cst.Call) -> cst.BaseExpression | None:
    """The program's own collate function that a loader's call is given, as it stands there; None where torch's own joins the samples.

    Raises `UsageError` where the loader makes no batches, or where neither can be told.
    """
    here = file.location(call)
    given = keyword(call, "collate_fn") or positional(call, loading.COLLATE_AT)
    own = None if given is None or dotted(given.value) == "None" else given.value
    if given is not None and own is None:
        raise refuse(f"{here}: the loader is given no collate function")
    if given is None and has_splat(call, "*"):
        raise refuse(f"{here}: a *splat may pass a collate function")
    if given is None:
        loading.can_be_added(scene.project, file, call, "collate_fn", LOADER.calls)
    size = keyword(call, "batch_size") or positional(call, 1)
    if size is not None and dotted(size.value) == "None":
        raise refuse(f"{here}: the loader makes no batches")
    return own


def collate_with(file: PythonFile, call: cst.Call, own: cst.BaseExpression | None, text: str) -> Splice:
    """`text` as a loader's collate function, in place of its `own` or as a new argument."""
    if own is not None:
        return Splice(file.path, *file.outer_span(own), text)
    at, written = insertion(file, call)
    return Splice(file.path, at, at, written.format(f"collate_fn={text}"))


def item_function(scene: Scene) -> tuple[PythonFile, cst.FunctionDef] | None:
    """The program's function that reads one sample for the training loader, where the run saw it."""
    loader = scene.facts.get("train_loader")
    place = loader.dataset_location if loader is not None else None
    if place is None or not scene.project.owns(place):
        return None
    file = scene.project.python(place.file)
    function = file.function_at(place)
    return None if function is None else (file, function)


def sample_parts(scene: Scene, key: int | str) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What the data set gives as the part `key` of a sample, at each return; empty where that is not written out."""
    found = item_function(scene) or _only_item_function(scene)
    if found is None:
        return []
    file, function = found
    parts = [_part(function, node.value, key) for node in descendants(function, cst.Return)]  # type: ignore[attr-defined]
    return [(file, part) for part in parts if part is not None] if None not in parts else []


def _only_item_function(scene: Scene) -> tuple[PythonFile, cst.FunctionDef] | None:
    found = scene.project.functions("__getitem__")
    return found[0] if len(found) == 1 else None


def _part(function: cst.FunctionDef, node: cst.BaseExpression | None, key: int | str) -> cst.BaseExpression | None:
    if isinstance(node, cst.Name):
        given = given_to(function, node.value)
        return _part(function, given[0], key) if len(given) == 1 and not isinstance(given[0], cst.Name) else None
    if isinstance(node, (cst.Tuple, cst.List)) and isinstance(key, int) and -len(node.elements) <= key < len(node.elements):
        return node.elements[key].value
    if isinstance(node, cst.Dict) and isinstance(key, str):
        pairs = [each for each in node.elements if isinstance(each, cst.DictElement)]
        found = [each.value for each in pairs if string_value(each.key) == key]
        return found[0] if len(found) == 1 else None
    return None


def _handed_over(scene: Scene) -> tuple[PythonFile, cst.Arg]:
    """The one argument `data_collator=` or `collate_fn=` of the program, where a trainer makes the loader."""
    found = [
        (file, arg) for file in scene.project.parsed() for call in file.calls for name in HANDED if (arg := keyword(call, name)) is not None
    ]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} {' or '.join(HANDED)} is handed over in the program")
    return found[0]
