"""A loader that each step begins anew for one batch: one iterator is kept, and begins again at its end.

`x, y = next(iter(loader))` becomes `x, y = next(batches)` of `batches = itertools.chain.from_iterable(itertools.repeat(loader))`, made in
front of the loop. The batches are other ones than those that were drawn anew, each sample once in a pass. Only for a loader whose making
is found, that shuffles by itself, and that stays the same while the loop runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits import calls, imports
from trainflash.knobs.edits.keeping.kept_calls import set_once
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import CallArgument, KeptIterator
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import assigned, free_name, given_to, passed, refuse
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    PythonFile,
    descendants,
    dotted,
    elements_of,
    has_splat,
    keyword,
    methods_of,
    own_method,
    targets_of,
)
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice
from trainflash.knobs.training import loading

DROPS = CallArgument(loading.LOADERS, "drop_last", position=8, default=False, at="train_loader")
NAMES = ("batches", "endless_batches", "kept_batches")
DEEPEST = 4  # own: names between the loop and the call that makes the loader
SAMPLERS = ("sampler", "batch_sampler")


@dataclass(frozen=True)
class _Made:
    """The call that makes the loader; the names by which it comes to the loop, and the arguments that hand it on."""

    file: PythonFile
    call: cst.Call
    names: frozenset[str]
    handed: tuple[cst.CSTNode, ...]


def kept_iterator(edit: KeptIterator, scene: Scene) -> tuple[Target, ...]:
    """The one `next(iter(loader))` at the finding's line. Raises `UsageError` where it may be another loader later, or serves others."""
    file, line = scene.source("begins the loader")
    found = [call for call in file.calls if file.covers(call, line.line) and _begun(call) is not None]
    if len(found) != 1:
        raise refuse(f"{line}: {'no' if not found else 'more than one'} `next(iter(loader))` is at this line")
    call = found[0]
    loader = _begun(call)
    assert loader is not None
    made = _making(scene.project, file, loader)
    loop = _loop(file, call, file.text(loader))
    _stays(scene, file, loop, made)
    name = free_name(file, call, *NAMES)
    chain, first = imports.reach(file, "itertools", "chain")
    repeat, second = imports.reach(file, "itertools", "repeat")
    start, indent = file.span(loop)[0], file.indent(loop)
    text = f"{name} = {chain}.from_iterable({repeat}({file.text(loader)})){file.newline}{indent}"
    changed = (*first, *second, Splice(file.path, start, start, text), Splice(file.path, *file.outer_span(call.args[0].value), name))
    splices: tuple[Edit, ...] = tuple(dict.fromkeys((*changed, *_whole_batches(scene, made))))
    where = f"one iterator of {file.text(loader)} in front of the loop at line {file.lines_of(loop)[0]}"
    return (Target(file.location(call), None, lambda value: splices, where, "kept"),)


def _begun(call: cst.Call) -> cst.BaseExpression | None:
    """What `call` begins for one thing of it, by `next(iter(…))`."""
    inner = call.args[0].value if dotted(call.func) == "next" and len(call.args) == 1 else None
    if not isinstance(inner, cst.Call) or dotted(inner.func) != "iter" or len(inner.args) != 1:
        return None
    loader = inner.args[0].value
    return loader if dotted(loader) is not None and not inner.args[0].star else None


def _making(project: Project, file: PythonFile, node: cst.BaseExpression) -> _Made:
    """Where what `node` names is made. Raises `UsageError` where that is not one call of `DataLoader` for good."""
    here, where = file.location(node), file
    names: set[str] = set()
    handed: list[cst.CSTNode] = []
    for _ in range(DEEPEST + 1):
        if isinstance(node, cst.Call):
            if where.full_name(node.func) in loading.LOADERS:
                return _Made(where, node, frozenset(names), tuple(handed))
            break
        names.add((dotted(node) or "").split(".")[-1])
        value = _given(project, where, node)
        if isinstance(value, cst.Param):
            function = next(up for up in where.ancestors(value) if isinstance(up, (cst.FunctionDef, cst.Lambda)))
            sites = callers.sites(project, where, function) if isinstance(function, cst.FunctionDef) and not value.star else []
            given = passed(*sites[0], where, function, value) if len(sites) == 1 else None  # type: ignore[arg-type]
            if given is None:
                break
            where, node = sites[0][0], given
            handed.append(node)
        elif value is None:
            break
        else:
            node = value
    raise refuse(f"{here}: where the loader is made, and that it stays the same, cannot be told")


def _given(project: Project, file: PythonFile, node: cst.BaseExpression) -> cst.BaseExpression | cst.Param | None:
    """The only value that a name or a field of `self` ever gets, or the parameter that it is; None for anything else."""
    if isinstance(node, cst.Name):
        shared = {item.name.value for each in file.nodes if isinstance(each, (cst.Global, cst.Nonlocal)) for item in each.names}
        scope = file.scope(node)
        found = [getattr(each, "node", None) for each in (scope[node.value] if scope is not None else ())]
        if len(found) != 1 or found[0] is None or node.value in shared:
            return None
        if isinstance(found[0], cst.Param):
            return found[0]
        plain = isinstance(file.parent(found[0]), (cst.AssignTarget, cst.AnnAssign))
        return assigned(file, found[0]) if plain else None
    function = file.function_around(node)
    owner = file.class_of(function) if function is not None else None
    if (
        not isinstance(node, cst.Attribute)
        or dotted(node.value) != "self"
        or owner is None
        or own_method(owner, node.attr.value) is not None
    ):
        return None
    values = [each for init in methods_of(owner) if init.name.value == "__init__" for each in given_to(init, f"self.{node.attr.value}")]
    return values[0] if len(values) == 1 and set_once(project, node.attr.value, whole=False) else None


def _loop(file: PythonFile, call: cst.Call, said: str) -> cst.For | cst.While:
    """The outermost loop of the function around the call that has the same loader all the time. Raises `UsageError` without one."""
    for loop in reversed(list(file.loops_around(call))):
        lines = (loop, *descendants(loop.body, (*ASSIGNS, cst.NamedExpr, cst.For, cst.AsName)))
        if not any(_sets(each, said) for each in lines):
            return loop
    raise refuse(f"{file.location(call)}: no loop is around it that has the same loader all the time")


def _sets(node: cst.CSTNode, said: str) -> bool:
    """Whether a statement gives the loader's name, or what it is asked of, another value."""
    if isinstance(node, cst.While):
        return False
    targets = [node.name] if isinstance(node, cst.AsName) else targets_of(node)
    names = [dotted(part) for each in targets for part in elements_of(each)]  # type: ignore[arg-type]
    return any(said == name or said.startswith(f"{name}.") for name in names)


def _stays(scene: Scene, file: PythonFile, loop: cst.For | cst.While, made: _Made) -> None:
    """Raises `UsageError` unless it is the training's loader, shuffles by itself, and the loop changes nothing of what it is made of."""
    here, facts = made.file.location(made.call), scene.facts.get("train_loader")
    place = facts.location if facts is not None else None
    if place is None or place.file != made.file.path or not made.file.covers(made.call, place.line):
        raise refuse(f"{here}: the training's batches come from another loader")
    if any(keyword(made.call, name) is not None for name in SAMPLERS) or has_splat(made.call, "*") or has_splat(made.call, "**"):
        raise refuse(f"{here}: a sampler of its own may be changed, and says how long a pass is")
    names = {each.value for arg in made.call.args for each in descendants(arg.value, cst.Name)} - set(made.file.imported)  # type: ignore[attr-defined]
    changed = changes.changed(scene.project, file, loop.body, names)
    if changed is not None:
        raise refuse(f"{file.location(changed)}: the loop changes what the loader is made of")


def _whole_batches(scene: Scene, made: _Made) -> tuple[Edit, ...]:
    """The edit after which a pass has no smaller last batch, which nobody has seen yet. Raises `UsageError` where others read it."""
    here, facts = made.file.location(made.call), scene.facts.get("train_loader")
    if (
        facts is None
        or facts.dataset_len is None
        or not facts.batch_size
        or facts.dataset_len < facts.batch_size
        or scene.summary.ranks > 1
    ):
        raise refuse(f"{here}: how many whole batches a pass has is not known, or it has none")
    if facts.dataset_len % facts.batch_size == 0:
        return ()
    target = calls.at_call(DROPS, scene, made.file, made.call)
    if target.current is True:
        return ()
    for name in made.names:
        for where in scene.project.parsed(name):
            for node in where.nodes:
                named = isinstance(node, (cst.Name, cst.Attribute)) and (dotted(node) or "").split(".")[-1] == name
                if named and _reads(where, node, made):
                    raise refuse(f"{where.location(node)}: `{where.text(node)}` is read here, too, and would lose its last batch")
    return target.write(True)


def _reads(file: PythonFile, node: cst.CSTNode, made: _Made) -> bool:
    """Whether a name of the loader stands for anything but giving it the name, handing it on, one batch of it, or showing its length."""
    up = file.parent(node)
    if isinstance(up, (cst.AssignTarget, cst.AnnAssign, cst.Param)) or (isinstance(up, cst.Attribute) and up.attr is node):
        return False
    if isinstance(up, cst.Assign) or any(node is each for each in made.handed):
        return False
    asked = file.parent(up) if isinstance(up, cst.Arg) else None
    if not isinstance(asked, cst.Call) or up.keyword is node:  # type: ignore[union-attr]
        return not (isinstance(up, cst.Arg) and up.keyword is node)
    outer = file.parent(file.parent(asked))  # type: ignore[arg-type]
    if dotted(asked.func) == "iter":
        return not (isinstance(outer, cst.Call) and _begun(outer) is node)
    return not (dotted(asked.func) == "len" and isinstance(outer, cst.Call) and dotted(outer.func) == "print")
