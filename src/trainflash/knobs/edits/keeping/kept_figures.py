"""Figures of what stays as it is, such as the mean of all data: worked out once, behind the line that sets it or in front of the loop.

`(wave - self.clips.mean()) / self.clips.std()` in each batch, on clips that `__init__` is given and that nothing sets or changes later; the
same of a variable that the loop around does not change, and of one that the module sets once.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.keeping.kept_calls import constant, trained
from trainflash.knobs.effects import changes, given
from trainflash.knobs.project import Project
from trainflash.knobs.reading import own_classes
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, literal, refuse
from trainflash.knobs.reading.python_source import (
    PythonFile,
    base_names,
    descendants,
    dotted,
    has_slots,
    methods_of,
    own_field,
    parameter_names,
    targets_of,
)
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

# Methods of tensors and arrays that go through all of it, change nothing and draw nothing.
FIGURES = {
    "amax", "amin", "argmax", "argmin", "argsort", "cumsum", "logsumexp", "max", "mean", "median", "min", "nanmean", "nanmedian", "nansum",
    "norm", "prod", "ptp", "quantile", "softmax", "std", "sum", "var",
}  # fmt: skip
NETWORKS = {"Module", "LightningModule", "PreTrainedModel"}


def kept_figures(scene: Scene, place: Location) -> Target | None:
    """All such calls at a line that was seen to give the same again; None without one. Raises `UsageError` where one may be another."""
    if not scene.project.owns(place):
        return None
    file = scene.project.python(place.file)
    calls = [call for call in file.calls if file.covers(call, place.line) and _is_figure(call)]
    if not calls:
        return None
    taken = {node.value for where in scene.project.parsed() for node in where.each(cst.Name)}
    splices: list[Splice] = []
    names: dict[str, str] = {}
    for call in calls:
        splices += _kept(scene.project, file, call, names, taken)
    where = f"`{'` and `'.join(names)}` at {place}"
    return Target(file.location(calls[0]), "off", lambda value: tuple(splices), where, ", ".join(dict.fromkeys(names.values())))


def _is_figure(call: cst.Call) -> bool:
    """Whether a method of a variable or of a field of `self` works out a figure of all of it."""
    held = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value in FIGURES else None
    return isinstance(held, cst.Name) or (held is not None and own_field(held) is not None)


def _kept(project: Project, file: PythonFile, call: cst.Call, names: dict[str, str], taken: set[str]) -> list[Splice]:
    """The call replaced by a name, and on the first time the line that gives it its value."""
    here, text, held = file.location(call), file.text(call), call.func.value  # type: ignore[union-attr]
    at = changes.result_changed(project, [(file, call)])
    if at is not None:
        raise refuse(f"{here}: what `{text}` gives is changed at {at}")
    offset, line = _place(project, file, call, held)
    splices = []
    if text not in names:
        first = dotted(held) or ""
        name = f"{first}_{call.func.attr.value}"  # type: ignore[union-attr]
        while name.removeprefix("self.") in taken:
            name += "_kept"
        taken.add(name.removeprefix("self."))
        names[text] = name
        splices.append(Splice(file.path, offset, offset, line.format(f"{name} = {text}")))
    return [*splices, Splice(file.path, *file.span(call), names[text])]


def _place(project: Project, file: PythonFile, call: cst.Call, held: cst.BaseExpression) -> tuple[int, str]:
    """Where the figure can be worked out once, and the form of the line there. Raises `UsageError` where it may be another in each step."""
    here, text = file.location(call), file.text(call)
    loop = _loop_that_leaves_it(project, file, call, held) if isinstance(held, cst.Name) else None
    if loop is not None and all(literal(arg.value) is not UNKNOWN for arg in call.args):
        return file.span(loop)[0], f"{{}}{file.newline}{file.indent(loop)}"
    if not constant(project, file, call, held) or not all(constant(project, file, call, arg.value) for arg in call.args):
        raise refuse(f"{here}: `{text}` may be another in each step")
    line = _set_at(project, file, call, held)
    return file.span(line)[1], f"{file.newline}{file.indent(line)}{{}}"


def _loop_that_leaves_it(project: Project, file: PythonFile, call: cst.Call, held: cst.Name) -> cst.For | cst.While | None:
    """The outermost loop around the call that neither sets nor changes a variable which the function has set in front of it once."""
    function = file.function_around(call)
    values = given_to(function or file.module, held.value)
    if len(values) != 1 or (function is not None and held.value in parameter_names(function)) or trained(file, values[0]):
        return None
    found = None
    for loop in file.loops_around(call):
        if file.inside(values[0], loop) or held.value in given.bound(loop):
            break
        if changes.changed(project, file, loop, {held.value}) is not None:
            break
        found = loop if file.span(values[0])[0] < file.span(loop)[0] else found
    return found


def _set_at(project: Project, file: PythonFile, call: cst.Call, held: cst.BaseExpression) -> cst.CSTNode:
    """The one line, under no condition, at which `__init__` or the module sets it."""
    name, owner = dotted(held) or "", file.class_around(call)
    blocks: list[cst.CSTNode] = [file.module]
    if isinstance(held, cst.Attribute):
        if owner is None or any(NETWORKS & base_names(each) for _, each in own_classes.lineage(project, file, owner)):
            raise refuse(f"{file.location(call)}: what a network holds may be moved to another device")
        if has_slots(file, owner):
            raise refuse(f"{file.location(owner)}: {owner.name.value} has slots")
        blocks = [each.body for each in methods_of(owner) if each.name.value == "__init__"]
    lines = [
        line
        for block in blocks
        for line in block.body  # type: ignore[attr-defined]
        if isinstance(line, cst.SimpleStatementLine)
        and any(name in _dotted_names(target) for small in line.body for target in targets_of(small))
    ]
    if len(lines) != 1:
        raise refuse(f"{file.location(call)}: `{name}` is not set at one place")
    return lines[0]


def _dotted_names(target: cst.BaseExpression) -> set[str]:
    return {dotted(each) or "" for each in descendants(target, (cst.Name, cst.Attribute))}
