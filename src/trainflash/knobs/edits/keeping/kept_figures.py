"""Figures of what an object keeps for good, such as the mean of its data: worked out once, where the object gets it.

`(wave - self.clips.mean()) / self.clips.std()` in each batch, on clips that `__init__` is given and that nothing sets or changes later.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.keeping.kept_calls import constant
from trainflash.knobs.effects import changes
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, has_slots, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

# Methods of tensors and arrays that go through all of it, change nothing and draw nothing.
FIGURES = {
    "amax", "amin", "argmax", "argmin", "argsort", "cumsum", "logsumexp", "max", "mean", "median", "min", "nanmean", "nanmedian", "nansum",
    "norm", "prod", "ptp", "quantile", "softmax", "std", "sum", "var",
}  # fmt: skip
NETWORKS = ("Module", "LightningModule", "PreTrainedModel")


def kept_figures(scene: Scene, place: Location) -> Target:
    """All such calls at a line that was seen to give the same again. Raises `UsageError` where there is none, saying why."""
    file = scene.project.python(place.file)
    function = file.function_at(place)
    owner = file.class_of(function) if function is not None else None
    calls = [call for call in file.calls if file.covers(call, place.line) and is_figure(call)]
    if owner is None or not calls:
        raise refuse(f"{place}: the work that repeats is in no function and no call whose result could be kept")
    if has_slots(file, owner):
        raise refuse(f"{file.location(owner)}: {owner.name.value} has slots")
    if set(NETWORKS) & base_names(owner):
        raise refuse(f"{file.location(owner)}: what a network holds may be moved to another device")
    taken = {node.value for where in scene.project.parsed() for node in where.nodes if isinstance(node, cst.Name)}
    splices: list[Splice] = []
    names: dict[str, str] = {}
    for call in calls:
        splices += _kept(scene.project, file, owner, call, names, taken)
    shown = ", ".join(dict.fromkeys(names.values()))
    where = f"`{'` and `'.join(names)}` at {place}, of what the object keeps"
    return Target(file.location(calls[0]), "off", lambda value: tuple(splices), where, f"self.{shown}")


def is_figure(call: cst.Call) -> bool:
    """Whether a method of a field of `self` works out a figure of all of it."""
    held = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value in FIGURES else None
    return isinstance(held, cst.Attribute) and dotted(held.value) == "self"


def _kept(project: Project, file: PythonFile, owner: cst.ClassDef, call: cst.Call, names: dict[str, str], taken: set[str]) -> list[Splice]:
    """The call replaced by a field, and on the first time the line that sets it behind the one that sets what it is a figure of."""
    here, text = file.location(call), file.text(call)
    held = call.func.value  # type: ignore[union-attr]
    if not constant(project, file, call, held) or not all(constant(project, file, call, arg.value) for arg in call.args):
        raise refuse(f"{here}: `{text}` may be another in each step")
    at = changes.result_changed(project, [(file, call)])
    if at is not None:
        raise refuse(f"{here}: what `{text}` gives is changed at {at}")
    splices = []
    if text not in names:
        field = f"{held.attr.value}_{call.func.attr.value}"  # type: ignore[union-attr]
        while field in taken:
            field += "_kept"
        taken.add(field)
        names[text] = field
        line = _set_at(file, owner, dotted(held) or "")
        end = file.span(line)[1]
        splices.append(Splice(file.path, end, end, f"{file.newline}{file.indent(line)}self.{field} = {text}"))
    return [*splices, Splice(file.path, *file.span(call), f"self.{names[text]}")]


def _set_at(file: PythonFile, owner: cst.ClassDef, name: str) -> cst.CSTNode:
    """The one line of `__init__` that sets the field, under no condition."""
    inits = [each for each in owner.body.body if isinstance(each, cst.FunctionDef) and each.name.value == "__init__"]
    lines = [
        line
        for init in inits
        for line in init.body.body
        if isinstance(line, cst.SimpleStatementLine)
        and any(name in _dotted_names(target) for small in line.body for target in targets_of(small))
    ]
    if len(lines) != 1:
        raise refuse(f"{file.location(owner)}: `{name}` is not set at one place of `__init__`")
    return lines[0]


def _dotted_names(target: cst.BaseExpression) -> set[str]:
    return {dotted(each) or "" for each in descendants(target, cst.Attribute)}
