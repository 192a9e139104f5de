"""A loader that each step begins anew for one batch: one iterator is kept, and begins again at its end.

`x, y = next(iter(loader))` becomes `x, y = next(batches)` of `batches = itertools.chain.from_iterable(itertools.repeat(loader))`, made in
front of the loop, or where the loader is made. The batches are other ones than those that were drawn anew, each sample once in a pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits import calls, imports
from trainflash.knobs.edits.keeping.kept_calls import set_once
from trainflash.knobs.edits.statements import behind
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import CallArgument, KeptIterator
from trainflash.knobs.reading.expressions import free_name, refuse
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice
from trainflash.knobs.training import loading

DROPS = CallArgument(loading.LOADERS, "drop_last", position=8, default=False, at="train_loader")
NAMES = ("batches", "endless_batches", "kept_batches")
GO_THROUGH = ("enumerate", "list", "tuple", "zip", "tqdm", "map", "sum", "set", "sorted", "cycle", "islice")


def kept_iterator(edit: KeptIterator, scene: Scene) -> tuple[Target, ...]:
    """The one `next(iter(loader))` at the finding's line. Raises `UsageError` where it may be another loader later, or serves others."""
    file, line = scene.source("begins the loader")
    found = [call for call in file.calls if file.covers(call, line.line) and _begun(call) is not None]
    if len(found) != 1:
        raise refuse(f"{line}: {'no' if not found else 'more than one'} `next(iter(loader))` is at this line")
    call = found[0]
    loader = _begun(call)
    assert loader is not None
    place = _place(scene, file, call, loader)
    chain, first = imports.reach(file, "itertools", "chain")
    repeat, second = imports.reach(file, "itertools", "repeat")
    made = place.makes(f"{chain}.from_iterable({repeat}({file.text(loader)}))")
    changed = (*first, *second, made, Splice(file.path, *file.outer_span(call.args[0].value), place.name))
    splices: tuple[Edit, ...] = tuple(dict.fromkeys((*changed, *_whole_batches(scene, file, loader))))
    return (Target(file.location(call), None, lambda value: splices, f"one iterator of {file.text(loader)} {place.shown}", "kept"),)


def _begun(call: cst.Call) -> cst.BaseExpression | None:
    """What `call` begins for one thing of it, by `next(iter(…))`."""
    inner = call.args[0].value if dotted(call.func) == "next" and len(call.args) == 1 else None
    if not isinstance(inner, cst.Call) or dotted(inner.func) != "iter" or len(inner.args) != 1:
        return None
    loader = inner.args[0].value
    return loader if dotted(loader) is not None and not inner.args[0].star else None


@dataclass(frozen=True)
class _Place:
    """Where the iterator is made: in front of a loop, or behind the line that makes the loader."""

    file: PythonFile
    node: cst.CSTNode
    name: str
    before: bool

    @property
    def shown(self) -> str:
        line = self.file.lines_of(self.node)[0]
        return f"in front of the loop at line {line}" if self.before else f"beside it at line {line}"

    def makes(self, value: str) -> Splice:
        text, indent = f"{self.name} = {value}", self.file.indent(self.node)
        if not self.before:
            return behind(self.file, self.node, indent, text)
        start = self.file.span(self.node)[0]
        return Splice(self.file.path, start, start, f"{text}{self.file.newline}{indent}")


def _place(scene: Scene, file: PythonFile, call: cst.Call, loader: cst.BaseExpression) -> _Place:
    """In front of the outermost loop that has the same loader all the time. Raises `UsageError` without a place for the iterator."""
    here, said = file.location(call), file.text(loader)
    own = said.startswith("self.")
    name = free_name(file, call, *(NAMES if not own else [name for name in NAMES if not _is_field(scene, name)] or NAMES[:1]))
    if own and _is_field(scene, name):
        raise refuse(f"{here}: {name} is a field already")
    if own and not set_once(scene.project, said.split(".")[1], whole=False):
        raise refuse(f"{here}: {said} may be another loader later")
    for loop in reversed(list(file.loops_around(call))):
        if not any(
            _sets(node, said) for node in (loop, *descendants(loop.body, (*ASSIGNS, cst.NamedExpr, cst.For, cst.AsName, cst.Global)))
        ):
            return _Place(file, loop, name, before=True)
    given = list(_given(file, said))
    if len(given) != 1:
        raise refuse(f"{here}: no loop is around it, and where {said} is made cannot be told")
    return _Place(file, given[0], f"self.{name}" if own else name, before=False)


def _is_field(scene: Scene, name: str) -> bool:
    return any(True for _ in scene.project.parsed(f".{name}"))


def _sets(node: cst.CSTNode, said: str) -> bool:
    """Whether a statement gives the loader's name, or what it is asked of, another value."""
    parts = said.split(".")
    names = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    if isinstance(node, cst.Global):
        return any(each.name.value in names for each in node.names)
    if isinstance(node, cst.AsName):
        return dotted(node.name) in names
    if isinstance(node, cst.While):
        return False
    return any(dotted(each) in names for target in targets_of(node) for each in (target, *descendants(target, (cst.Name, cst.Attribute))))


def _given(file: PythonFile, said: str) -> Iterator[cst.CSTNode]:
    """Plain assignments that give the loader its name: in `__init__`, or by the module itself."""
    for node in file.nodes:
        if isinstance(node, ASSIGNS) and any(dotted(target) == said for target in targets_of(node)):
            around = file.function_around(node)
            own = around is not None and around.name.value == "__init__" if said.startswith("self.") else around is None
            alone = file.parent(file.statement(node)) is file.module or own
            if isinstance(node, cst.Assign) and own and alone and not any(True for _ in file.loops_around(node)):
                yield node
            else:
                yield from (node, node)  # it may be another one


def _whole_batches(scene: Scene, file: PythonFile, loader: cst.BaseExpression) -> tuple[Edit, ...]:
    """The edit after which a pass has no smaller last batch, which nobody has seen yet. Raises `UsageError` where others go through it."""
    facts = scene.facts.get("train_loader")
    if facts is None or facts.dataset_len is None or not facts.batch_size:
        raise refuse(f"{file.location(loader)}: how many samples a pass has is not known")
    if facts.dataset_len % facts.batch_size == 0:
        return ()
    where, made = the_call(DROPS, scene)
    target = calls.at_call(DROPS, scene, where, made)
    if target.current is True:
        return ()
    word = file.text(loader).split(".")[-1]
    for other in scene.project.parsed(word):
        for node in other.nodes:
            if isinstance(node, (cst.Name, cst.Attribute)) and (dotted(node) or "").split(".")[-1] == word and _goes_through(other, node):
                raise refuse(f"{other.location(node)}: `{other.text(node)}` is gone through here, too, and would lose its last batch")
    return target.write(True)


def _goes_through(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a loader is gone through, or begun for more than one batch."""
    up = file.parent(node)
    asked = file.parent(up) if isinstance(up, cst.Arg) else None
    if isinstance(asked, cst.Call):
        called = (dotted(asked.func) or "").split(".")[-1]
        outer = file.parent(file.parent(asked)) if called == "iter" else None  # type: ignore[arg-type]
        return called in GO_THROUGH or (called == "iter" and not (isinstance(outer, cst.Call) and _begun(outer) is node))
    return isinstance(up, (cst.For, cst.CompFor, cst.From, cst.StarredElement))
