"""Keep the results of a pure function: `functools.cache` on the function that the run saw repeating itself.

A method or a property is decorated in the same way: the cache then belongs to the class and its key holds the object. It is no part of
the object, so objects still pickle for spawned workers (each process fills a cache of its own). The price is that an object stays alive
as long as the cache, which for a data set is the whole run anyway.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs import facts
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.keeping.by_contents import kept_by_contents
from trainflash.knobs.edits.statements import decorating
from trainflash.knobs.effects import changes, purity
from trainflash.knobs.kinds import Memoize
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import no_place, refuse
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, descendants, has_slots
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import LoaderFacts, Location, RepeatedWork

LEAST_SHARE = 0.01  # own: of the time, that repeating takes; less is no candidate, whatever the finding that it is a part of
MOST_PLACES = 3  # own: functions inside each other repeat together; the costliest few say it all
UNSIZED_ENTRIES = 64  # own: results of unknown size are kept only if there are few
TEXTS = ("str", "bytes", "pathlib.Path")
INFERENCE = "a tensor that is made under inference_mode would be kept, and training cannot use it"
BOUNDED_ABOVE = 1024  # own: beyond so many results the cache gets an explicit bound


@dataclass(frozen=True)
class _Size:
    """How many results will be kept, and of how many bytes each; None: not measured."""

    entries: int
    each: int | None


def memoize(edit: Memoize, scene: Scene) -> tuple[Target, ...]:
    """Decorators for the costliest functions seen repeating. Raises `UsageError` when none of them can be cached, saying why."""
    targets, reasons = [], []
    works = _works(scene)
    if not works:
        raise no_place("the run saw no function repeat its work" + (f" at {scene.at}" if scene.at is not None else ""))
    repeated: dict[Location, float] = defaultdict(float)
    for work in works:
        repeated[work.location] += work.share
    worth = [work for work in works if repeated[work.location] >= LEAST_SHARE or scene.at is not None]
    if not worth:
        raise refuse(f"what functions repeat takes {max(repeated.values()):.2%} of the time at most")
    for work in worth:
        try:
            targets.append(_target(edit, scene, work))
        except UsageError as bad:
            reasons.append(bad.message)
    if not targets:
        raise refuse("; ".join(reasons))
    return tuple(targets[:MOST_PLACES])


def _works(scene: Scene) -> list[RepeatedWork]:
    place = scene.at or (scene.finding.location if scene.finding is not None and scene.finding.kind == "repeated_work" else None)
    ordered = sorted(scene.summary.repeated, key=lambda work: -work.share)
    if place is None:
        return ordered
    exact = [work for work in ordered if work.location.file == place.file and work.location.line == place.line]
    if exact or not scene.project.owns(place):
        return exact
    function = scene.project.python(place.file).function_at(place)
    name = function.name.value if function is not None else ""
    return [work for work in ordered if work.location.file == place.file and work.qualname.split(".")[-1] == name]


def _target(edit: Memoize, scene: Scene, work: RepeatedWork) -> Target:
    if work.during == "operators":  # nothing is known of a function that could be kept whole
        raise refuse(f"{work.location}: a call of a library is what repeats, and what it is made of may change")
    if not scene.project.owns(work.location):
        raise refuse(f"{work.qualname} is not in this project's own source")
    file = scene.project.python(work.location.file)
    function = _function(file, work)
    name = f"{work.qualname} at {work.location}"
    if purity.cached_already(file, function):
        raise refuse(f"{name} is cached already")
    if any(True for _ in scene.project.parsed("inference_mode")) and _makes_tensors(scene, file, function):
        raise refuse(f"{name}: {INFERENCE}")
    keyless = purity.unhashable(file, function) is not None
    held = _property(file, function) if keyless else None
    if held is None and not work.hashable and (keyless or not work.containers):
        raise refuse(f"{name}: its arguments cannot be keys of a cache")
    obstacle = purity.obstacle if held is None else purity.lasting_obstacle
    reason = obstacle(scene.project, file, function) or changes.lasting(scene.project, file, function)
    if reason is not None:
        raise refuse(f"{name}: {reason}")
    size = _size(scene, work)
    _outlives_a_pass(scene, work, name)
    _fits(edit, scene, size, name)
    if held is not None:
        spelled, edits = _kept_in_object(file, held)
    elif work.hashable:
        spelled, edits = _cached(file, function, size)
    else:
        spelled, edits = kept_by_contents(file, function, work, size.entries)
    return Target(file.location(function), "off", lambda value: edits, f"{name}, {_shown(size)}", f"{spelled} on {work.qualname}")


def _outlives_a_pass(scene: Scene, work: RepeatedWork, name: str) -> None:
    """Raises `UsageError` where workers fill the cache with a pass, and end with it: a result for each sample is never asked for again."""
    loader = scene.summary.busiest_loader("train")
    if work.role != "worker" or loader is None or not loader.num_workers or loader.persistent_workers:
        return
    if work.distinct * 2 > (loader.dataset_len or 0):
        raise refuse(f"{name}: workers are started anew for each pass, and each cache would end with its worker before it is asked again")


def _makes_tensors(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether the function, or one of the program's that it calls, calls torch."""
    reached = callees.reached(scene.project, [(file, function)])
    return any(
        (where.full_name(call.func) or "").startswith("torch.") for where, each in reached for call in descendants(each.body, cst.Call)
    )


def _cached(file: PythonFile, function: cst.FunctionDef, size: _Size) -> tuple[str, tuple[Splice, ...]]:
    """A decorator that keeps results by their arguments, and the edit that puts it there.

    Where 0 and 0.0, or 1 and True, may both be handed over, it tells them apart, which a cache by itself does not.
    """
    bounded = size.entries > BOUNDED_ABOVE
    options = [f"maxsize={_power_of_two(size.entries)}"] if bounded else []
    if not _of_one_type(file, function):
        options = [*(options or ["maxsize=None"]), "typed=True"]
    spelled, needed = imports.reach(file, "functools", "lru_cache" if options else "cache")
    spelled += f"({', '.join(options)})" if options else ""
    return spelled, (*needed, decorating(file, _below_binding(file, function), spelled))


def _of_one_type(file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether equal arguments are of the same type: there are none but the object, they are texts, or a sampler's numbers."""
    given = [each for each in descendants(function.params, cst.Param) if not file.inside(each, function.body)]
    own = file.class_of(function) is not None and not any(name.endswith("staticmethod") for name in decorator_names(file, function))
    if own and function.name.value == "__getitem__":
        return True
    texts = [each.annotation is not None and file.full_name(each.annotation.annotation) in TEXTS for each in given]  # type: ignore[attr-defined]
    return all(texts[1:] if own else texts)


def _kept_in_object(file: PythonFile, decorator: cst.Decorator) -> tuple[str, tuple[Splice, ...]]:
    """`functools.cached_property` in place of `property`: each object keeps its own result, and need not be a key."""
    spelled, needed = imports.reach(file, "functools", "cached_property")
    return spelled, (*needed, Splice(file.path, *file.span(decorator.decorator), spelled))


def _property(file: PythonFile, function: cst.FunctionDef) -> cst.Decorator | None:
    """The only decorator of a property whose objects can hold its result."""
    names, owner = decorator_names(file, function), file.class_of(function)
    if len(names) != 1 or callers.bound_by(file, names[0]) != "property" or owner is None:
        return None
    return None if has_slots(file, owner) else function.decorators[0]


def _below_binding(file: PythonFile, function: cst.FunctionDef) -> cst.CSTNode:
    """What the cache's line stands in front of: all other decorators, but under `property` and its like, which cannot be called."""
    parts: list[cst.CSTNode] = [*function.decorators, function]
    binding = [number for number, name in enumerate(decorator_names(file, function)) if callers.bound_by(file, name) is not None]
    return parts[binding[-1] + 1 if binding else 0]


def _function(file: PythonFile, work: RepeatedWork) -> cst.FunctionDef:
    name = work.qualname.split(".")[-1]
    for function in file.functions:
        first = min(file.lines_of(node)[0] for node in (function, *function.decorators))
        if function.name.value == name and first <= work.location.line <= file.lines_of(function.body)[0]:
            return function
    raise refuse(f"{work.location}: there is no function {name} at this line, the source has changed since the run")


def _size(scene: Scene, work: RepeatedWork) -> _Size:
    """A data set's own item function will keep one result per sample; any other as many as it had different arguments."""
    loaders = [each for each in scene.summary.loaders if _fetches(each, work)]
    if loaders:
        entries = max([work.distinct, *(each.dataset_len or 0 for each in loaders)])
        each = max([work.result_bytes or 0, *(one.sample_bytes or 0 for one in loaders)]) or None
        copies = max(1, *(one.num_workers for one in loaders)) if work.role == "worker" else 1
        return _Size(entries, None if each is None else each * copies)
    entries = work.distinct
    trained = facts.train_loader(scene.summary)
    if trained is not None and trained.dataset_len is not None and work.distinct > UNSIZED_ENTRIES:
        entries = max(entries, trained.dataset_len)
    return _Size(entries, work.result_bytes)


def _fetches(loader: LoaderFacts, work: RepeatedWork) -> bool:
    place = loader.dataset_location
    return place is not None and place.file == work.location.file and abs(place.line - work.location.line) <= 1


def _fits(edit: Memoize, scene: Scene, size: _Size, name: str) -> None:
    if size.each is None:
        if size.entries > UNSIZED_ENTRIES:
            raise refuse(f"{name}: {size.entries} results of unknown size would be kept")
        return
    needed = size.entries * size.each
    if scene.memory_bytes is None:
        raise refuse(f"{name}: how much memory is free could not be read")
    bound = edit.memory_share * scene.memory_bytes
    if needed > bound:
        kept = f"{size.entries} results of {_amount(size.each)} need {_amount(needed)}"
        raise refuse(f"{name}: {kept}, more than {edit.memory_share:.0%} of the memory that is free")


def _shown(size: _Size) -> str:
    kept = f"about {size.entries} result{'s' if size.entries != 1 else ''} will be kept"
    return kept if size.each is None else f"{kept}, {_amount(size.entries * size.each)}"


def _amount(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _power_of_two(entries: int) -> int:
    return 1 << (entries - 1).bit_length()
