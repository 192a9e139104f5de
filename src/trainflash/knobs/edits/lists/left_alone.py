"""Whether a tensor stays the same object with the same numbers while a loop runs, so that its numbers may be asked for in front of it."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.effects import changes, sharing, unseen
from trainflash.knobs.reading.expressions import given_to, is_name, refuse, short
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene


def stays(scene: Scene, file: PythonFile, around: cst.CSTNode, whole: cst.BaseExpression) -> None:
    """Raises `UsageError` where what the loop goes over may change while it does: `x` is then another number than when it began."""
    if isinstance(around, cst.GeneratorExp) and not isinstance(file.parent(around), cst.Arg):
        raise refuse(f"{file.location(around)}: the elements are asked for later, when `{file.text(whole)}` may have changed")
    roots = {node.value for node in descendants(whole, cst.Name) if is_name(file, node)}  # type: ignore[attr-defined,arg-type]
    held = {name for name in roots if sharing.Shared(scene.project, file, {name}).holds(whole)}
    body = around.body if isinstance(around, cst.For) else around
    for name in held:
        reason = _written(scene, file, body, around, name, file.text(whole))
        if reason is not None:
            raise reason


def is_there(file: PythonFile, loop: cst.For | cst.While, node: cst.BaseExpression) -> None:
    """Raises `UsageError` where the tensor may be missing in front of the loop, and is asked for only where it is not."""
    name, here = file.text(node), file.location(loop)
    owner = file.class_around(node) if name.startswith("self.") else file.function_around(node)
    for test in descendants(owner or file.module, cst.Comparison):
        if file.text(test.left) == name and any(dotted(each.comparator) == "None" for each in test.comparisons):  # type: ignore[attr-defined]
            raise refuse(f"{file.location(test)}: `{name}` may be None in front of the loop")
    scope = file.scope(loop)
    bound = [getattr(each, "node", None) for each in (scope[re.split(r"\W", name)[0]] if scope is not None else ())]
    around = {id(up) for up in file.ancestors(loop)}
    for each in bound:
        up: cst.CSTNode | None = each
        while up is not None and not isinstance(up, (cst.BaseSuite, cst.Param, cst.Module)):
            up = file.parent(up)
        before = each is not None and id(up) in around and file.span(each)[0] < file.span(loop)[0]
        if up is None or isinstance(up, (cst.Param, cst.Module)) or before:
            return
    raise refuse(f"{here}: whether `{name}` is there in front of the loop is not known")


def left_alone(scene: Scene, file: PythonFile, node: cst.CSTNode, name: str) -> cst.For | cst.While:
    """The outermost loop around `node` in which the tensor `name` stays the same object with the same numbers."""
    found, reason = None, None
    for loop in file.loops_around(node):
        reason = _changing(scene, file, loop, name)
        if reason is not None:
            break
        found = loop
    if found is None:
        raise reason or refuse(f"{file.location(node)}: stands in no loop")
    return found


def _changing(scene: Scene, file: PythonFile, loop: cst.For | cst.While, name: str) -> UsageError | None:
    first = re.split(r"\W", name)[0]
    for each in descendants(loop, cst.Name):
        if each.value == first and is_name(file, each) and _stored(file, each):
            return refuse(f"{file.location(each)}: `{first}` is set in the loop")
    return _written(scene, file, loop.body, loop, first, name)


def _written(scene: Scene, file: PythonFile, body: cst.CSTNode, loop: cst.CSTNode, first: str, name: str) -> UsageError | None:
    """Why the tensor `name`, a part of what `first` holds, may change in the body of the loop; None where it does not."""
    known = _also_known_as(scene, file, loop, first)
    made = changes.changed(scene.project, file, body, known) or unseen.changing(scene.project, file, body, {name, *known})
    return None if made is None else refuse(f"{file.location(made)}: `{short(file.text(made))}` may change `{name}` in the loop")


def _also_known_as(scene: Scene, file: PythonFile, loop: cst.CSTNode, name: str) -> set[str]:
    """All names of the function that may mean `name`, a part or a view of it, or what it is a part or a view of."""
    around = file.function_around(loop) or file.module
    made_of = {node.value for value in given_to(around, name) for node in descendants(value, cst.Name) if is_name(file, node)}
    wholes = {each for each in made_of if name in sharing.Shared(scene.project, file, {each}).within(around).names}
    return sharing.Shared(scene.project, file, {name, *wholes}).within(around).names


def _stored(file: PythonFile, node: cst.Name) -> bool:
    up = file.parent(node)
    if isinstance(up, cst.Element):
        up, node = file.parent(file.parent(up)), file.parent(up)  # type: ignore[assignment]
    if isinstance(up, cst.AsName):
        return True
    return isinstance(up, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.CompFor, *LOOPS)) and node is getattr(
        up, "target", None
    )
