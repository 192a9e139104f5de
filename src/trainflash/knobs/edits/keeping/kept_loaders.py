"""A loader that is made again for each pass, by a function or in a loop's head: the one that was made of the same arguments is kept.

`for batch in DataLoader(data, …)` becomes `for batch in _dataloader(data, …, persistent_workers=True)` of `_dataloader =
functools.cache(DataLoader)`. Other arguments make another loader, as before. A property that makes one becomes a cached property, and a
lambda that does keeps it, too.
"""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.calls import insertion
from trainflash.knobs.edits.keeping import kept_calls
from trainflash.knobs.edits.keeping.hoisting import LOADER
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import KeptLoader
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import UNKNOWN, assigned, literal, passed, refuse
from trainflash.knobs.reading.python_source import (
    PythonFile,
    base_names,
    decorator_names,
    descendants,
    dotted,
    has_slots,
    has_splat,
    keyword,
    own_method,
    sole,
)
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import loading, worker_state
from trainflash.schema import LoaderFacts

HIGHEST = 2  # own: functions between the loader and the loop over the epochs
NUMBERS = ("batch_size", "shuffle", "num_workers", "drop_last", "pin_memory", "timeout", "prefetch_factor")
OBJECTS = ("dataset", "collate_fn", "worker_init_fn")
SAMPLERS = ("sampler", "batch_sampler")  # they stay in the training's own process, where each pass begins them anew
UNHASHABLE = ("list", "dict", "set", "tuple")
DISPLAYS = (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp, cst.Call, cst.Lambda)


def kept_loader(edit: KeptLoader, scene: Scene) -> tuple[Target, ...]:
    """The loader that the finding names. Raises `UsageError` where it may be made of other objects each time, or be used twice at once."""
    file, call = the_call(LOADER, scene)
    here = file.location(call)
    function = file.function_around(call)
    if function is not None and decorator_names(file, function) == ["property"]:
        return (_kept_in_object(scene, file, function, call),)
    if isinstance(maker := file.parent(call), cst.Lambda) and maker.body is call:
        return (_kept_by_lambda(scene, file, maker, call),)
    if not any(True for _ in file.loops_around(call)) and not _repeated(scene, file, call, 0):
        raise refuse(f"{here}: no loop is known that makes it again")
    if has_splat(call, "*") or keyword(call, "persistent_workers") is not None:
        raise refuse(f"{here}: persistent_workers is given already, or comes from a *splat")
    _can_be_key(scene, here, _with_workers(scene, here).dataset)
    for place, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else ("dataset", "batch_size", "shuffle")[place] if place < 3 else ""
        if name in NUMBERS and not any(True for _ in descendants(arg.value, DISPLAYS)):
            continue
        if arg.star == "**" and _passes_nothing(scene, file, function, arg.value):
            continue
        if name in SAMPLERS and _own_sampler(scene, arg.value):
            continue
        if name not in OBJECTS or not _stays(scene, file, call, arg.value, 0):
            raise refuse(f"{here}: `{file.text(arg)}` may be another object each time, or be changed")
    worker_state.kept(scene.project)
    _one_at_a_time(scene, file, call)
    changed = changes.result_changed(scene.project, [(file, call)])
    if changed is not None:
        raise refuse(f"{here}: the loader is changed at {changed}")
    name, _, needed = kept_calls.cached_maker(file, call)
    at, text = insertion(file, call)
    splices = (*needed, Splice(file.path, *file.span(call.func), name), Splice(file.path, at, at, text.format("persistent_workers=True")))
    return (Target(here, None, lambda value: splices, f"the loader at {here}, of the same arguments", "kept"),)


def _passes_nothing(scene: Scene, file: PythonFile, function: cst.FunctionDef | None, options: cst.BaseExpression) -> bool:
    """Whether `**options` of a function's own is empty at each of its calls."""
    rest = function.params.star_kwarg if function is not None else None
    if function is None or rest is None or rest.name.value != dotted(options):
        return False
    named = {each.name.value for each in (*function.params.params, *function.params.kwonly_params)}
    sites = callers.sites(scene.project, file, function)
    given = [arg for _, site in sites for arg in site.args]
    return bool(sites) and not any(arg.star == "**" or (arg.keyword is not None and arg.keyword.value not in named) for arg in given)


def _own_sampler(scene: Scene, node: cst.BaseExpression) -> bool:
    """Whether a sampler is a field of the object's own that is given once; what it holds may change."""
    own = isinstance(node, cst.Attribute) and dotted(node.value) == "self"
    return own and kept_calls.set_once(scene.project, node.attr.value, whole=False)  # type: ignore[attr-defined]


def _with_workers(scene: Scene, here: object) -> LoaderFacts:
    loader = scene.facts.get("loader")
    if loader is None or not loader.num_workers:
        raise refuse(f"{here}: the loader has no workers to keep")
    return loader


def _kept_in_object(scene: Scene, file: PythonFile, function: cst.FunctionDef, call: cst.Call) -> Target:
    """The loader of a property, made once for each object. Raises `UsageError` where the property may give another one later."""
    here, name, owner = file.location(call), function.name.value, file.class_of(function)
    _with_workers(scene, here)
    lines = list(function.body.body)
    returned = sole(lines[-1])
    if len(lines) != 1 or not isinstance(returned, cst.Return) or returned.value is not call or owner is None:
        raise refuse(f"{here}: the property {name} does more than make the loader")
    fixed = {"NamedTuple", "tuple", "Enum", "str", "int"} & base_names(owner)
    if fixed or has_slots(file, owner):
        raise refuse(f"{here}: an object of {owner.name.value} has no place for the loader")
    if any(dotted(arg.value) == "self" for each in descendants(owner, cst.Call) if dotted(each.func) == "torch.save" for arg in each.args):  # type: ignore[attr-defined]
        raise refuse(f"{here}: an object of {owner.name.value} is saved")
    _the_same_each_time(scene, file, call)
    reads = scene.project.each((name,), lambda _, node: isinstance(node, cst.Attribute) and node.attr.value == name)
    _read_one_after_the_other(scene, name, reads)
    cached, needed = imports.reach(file, "functools", "cached_property")
    at, text = insertion(file, call)
    decorator = Splice(file.path, *file.span(function.decorators[0].decorator), cached)
    splices = (*needed, decorator, Splice(file.path, at, at, text.format("persistent_workers=True")))
    return Target(here, None, lambda value: splices, f"the loader of the property {name} at {here}", "kept")


def _kept_by_lambda(scene: Scene, file: PythonFile, maker: cst.Lambda, call: cst.Call) -> Target:
    """The loader that `name = lambda: DataLoader(…)` makes each time, made once. Raises `UsageError` where it may be another one later."""
    here, assign = file.location(call), file.parent(maker)
    target = assign.targets[0].target if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None
    name = (dotted(target) or "").removeprefix("self.")
    if not name or "." in name or next(descendants(maker.params, cst.Param), None) is not None:
        raise refuse(f"{here}: what the lambda is called with, or by which name, cannot be told")
    _with_workers(scene, here)
    _the_same_each_time(scene, file, call)
    said = scene.project.each((name,), lambda _, node: isinstance(node, (cst.Attribute, cst.Name)) and dotted(node) == dotted(target))
    called = [(where, up) for where, node in said if isinstance(up := where.parent(node), cst.Call) and up.func is node]
    if len(said) != len(called) + 1:
        raise refuse(f"{here}: {name} is set or handed on at other places, too")
    _read_one_after_the_other(scene, name, called)
    cached, needed = imports.reach(file, "functools", "cache")
    at, text = insertion(file, call)
    start, end = file.span(maker)
    splices = (
        *needed,
        Splice(file.path, start, start, f"{cached}("),
        Splice(file.path, at, at, text.format("persistent_workers=True")),
        Splice(file.path, end, end, ")"),
    )
    return Target(here, None, lambda value: splices, f"the loader that {name} makes at {here}", "kept")


def _the_same_each_time(scene: Scene, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the loader may be made of something else each time, or its workers cannot be kept."""
    here = file.location(call)
    loading.can_be_added(scene.project, file, call, "persistent_workers", LOADER.calls)
    if keyword(call, "persistent_workers") is not None:
        raise refuse(f"{here}: persistent_workers is given already")
    for arg in call.args:
        if arg.star == "*" or not kept_calls.constant(scene.project, file, call, arg.value):
            raise refuse(f"{here}: `{file.text(arg)}` may be another object each time, or be changed")
    worker_state.kept(scene.project)


def _read_one_after_the_other(scene: Scene, name: str, reads: list[tuple[PythonFile, cst.CSTNode]]) -> None:
    """Raises `UsageError` unless the head of one loop is all that `reads` the loader called `name`, and runs again."""
    for word in (f".{name}.setter", f".{name}.getter", f".{name}.deleter", f"@{name}.", "setattr", "deepcopy", "pickle"):
        for where in scene.project.parsed(word):
            raise refuse(f"{where.path}: `{word}` may set, copy or save what {name} belongs to")
    if len(scene.project.functions(name)) > 1:
        raise refuse(f"more than one {name} is defined in the program")
    if len(reads) != 1:
        raise refuse(f"{name} is read at {'no' if not reads else 'more than one'} place, and kept workers serve one iterator")
    where, node = reads[0]
    head: cst.CSTNode = node
    up = where.parent(head)
    if isinstance(up, cst.Arg) and isinstance(call := where.parent(up), cst.Call) and dotted(call.func) in ("enumerate", "tqdm"):
        head, up = call, where.parent(call)
    if not isinstance(up, cst.From) and (not isinstance(up, cst.For) or up.iter is not head):
        raise refuse(f"{where.location(node)}: `{where.text(node)}` is no head of a loop")
    outer = [each for each in where.loops_around(node) if each is not up]
    if not outer and not _repeated(scene, where, node, 0):
        raise refuse(f"no loop is known that reads {name} again")


def _repeated(scene: Scene, file: PythonFile, call: cst.CSTNode, depth: int) -> bool:
    """Whether the function around `call` is called in a loop, by itself or through others."""
    function = file.function_around(call)
    sites = callers.sites(scene.project, file, function) if function is not None and depth <= HIGHEST else []
    return any(True for where, site in sites if any(True for _ in where.loops_around(site)) or _repeated(scene, where, site, depth + 1))


def _can_be_key(scene: Scene, here: object, dataset: str) -> None:
    """Raises `UsageError` where the data set cannot be the key of a cache, or equals another one."""
    if dataset in UNHASHABLE:
        raise refuse(f"{here}: a {dataset} cannot be the key of a cache")
    for file in scene.project.parsed(f"class {dataset}"):
        for owner in (node for node in file.nodes if isinstance(node, cst.ClassDef) and node.name.value == dataset):
            compared = own_method(owner, "__eq__", "__hash__") is not None
            if compared or any("dataclass" in name or name == "?" for name in decorator_names(file, owner)):
                raise refuse(f"{here}: whether two objects of {dataset} are the same is decided by the class")


def _stays(scene: Scene, file: PythonFile, call: cst.Call, node: cst.BaseExpression, depth: int) -> bool:
    """Whether `node` is the same object each time that `call` is made."""
    if depth > HIGHEST:
        return False
    if literal(node) is not UNKNOWN or kept_calls.constant(scene.project, file, call, node):
        return True
    if not isinstance(node, cst.Name):
        return False
    if node.value in file.imported:
        return True
    scope = file.scope(node)
    found = [getattr(each, "node", None) for each in (scope[node.value] if scope is not None else ())]
    if len(found) != 1 or found[0] is None:
        return False
    around = file.function_around(node) or file.module
    if changes.changed(scene.project, file, around, {node.value}) is not None:
        return False
    place = found[0] if isinstance(found[0], cst.Param) else file.parent(found[0])
    if isinstance(found[0], (cst.FunctionDef, cst.ClassDef)):
        return file.parent(found[0]) is file.module
    if isinstance(place, cst.Param):
        return _handed(scene, file, place, depth)
    loops = list(file.loops_around(call))
    return bool(loops) and assigned(file, found[0]) is not None and not any(file.inside(found[0], loop) for loop in loops)


def _handed(scene: Scene, file: PythonFile, param: cst.Param, depth: int) -> bool:
    """Whether all callers give the same object for a parameter each time."""
    function = next((up for up in file.ancestors(param) if isinstance(up, (cst.FunctionDef, cst.Lambda))), None)
    if not isinstance(function, cst.FunctionDef) or param.star:
        return False
    try:
        sites = [(where, site, passed(where, site, file, function, param)) for where, site in callers.sites(scene.project, file, function)]
    except UsageError:
        return False
    return bool(sites) and all(node is not None and _stays(scene, where, site, node, depth + 1) for where, site, node in sites)


def _one_at_a_time(scene: Scene, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the same loader may be gone through twice at once."""
    function = file.function_around(call)
    loading.one_iterator(file, function if function is not None else file.module)
    sites = callers.sites(scene.project, file, function) if function is not None else []
    asked = ["".join(where.text(arg) for arg in site.args) for where, site in sites]
    if len(asked) != len(set(asked)):
        raise refuse(f"{file.location(call)}: `{function.name.value}` is called twice with the same arguments")  # type: ignore[union-attr]
    loops = [loop for loop in file.loops_around(call) if file.inside(call, loop.iter if isinstance(loop, cst.For) else loop.test)]
    around = [loop for loop in file.loops_around(call) if loop not in loops]
    if not sites and not around:
        raise refuse(f"{file.location(call)}: no loop is known that makes it again")
    for where, site in sites:
        up = where.parent(where.parent(site))  # type: ignore[arg-type]
        if isinstance(up, cst.Call) and dotted(up.func) == "zip":
            raise refuse(f"{where.location(site)}: `{where.text(up)}` goes through it beside another one")
