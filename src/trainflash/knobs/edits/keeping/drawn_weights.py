"""Weighted draws of numpy's: `choice(n, size=k, p=p)` adds all of `p` up in each call. Where `p` stays, its sums are kept.

numpy itself draws uniform numbers and looks them up in these sums, so the draws stay the same: Generator.choice in
numpy/random/_generator.pyx and RandomState.choice in mtrand.pyx, with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.kinds import DrawnWeights
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_slots, has_splat, keyword, positional, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import scales

UNIFORM = {"numpy.random.default_rng": "random", "numpy.random.Generator": "random", "numpy.random.RandomState": "random_sample"}
GLOBAL = "numpy.random.choice"
FRESH = (cst.BinaryOperation, cst.Call)


def drawn_weights(edit: DrawnWeights, scene: Scene) -> tuple[Target, ...]:
    """The one weighted draw at the finding's line, or in its function and below. Raises `UsageError` where its weights may change."""
    file, call = near(scene.project, *scene.source("draws"), _draws, "draw with weights")
    size = _size(file, call)
    field, line = _kept(scene, file, call)
    table = f"{field}_sums"
    if any(node.value == table.split(".")[-1] for each in scene.project.parsed() for node in each.nodes if isinstance(node, cst.Name)):
        raise refuse(f"{file.location(call)}: the name {table} is used already")
    uniform = _uniform(file, call)
    sums, first = imports.reach(file, "numpy", "cumsum")
    double, second = imports.reach(file, "numpy", "float64")
    end, indent = file.span(line)[1], file.indent(line)
    made = f"{file.newline}{indent}{table} = {sums}({field}, dtype={double}){file.newline}{indent}{table} /= {table}[-1]"
    drawn = f'{table}.searchsorted({uniform}({size}), side="right")'
    splices = (*dict.fromkeys((*first, *second)), Splice(file.path, end, end, made), Splice(file.path, *file.outer_span(call), drawn))
    return (Target(file.location(call), None, lambda value: splices, f"the draw at {file.location(call)}", f"sums of {field} made once"),)


def _draws(file: PythonFile) -> Iterator[tuple[cst.Call, tuple[PythonFile, cst.Call]]]:
    weighted = (call for call in file.calls if callees.method_name(call) == "choice" and keyword(call, "p") is not None)
    return ((call, (file, call)) for call in weighted)


def _size(file: PythonFile, call: cst.Call) -> str:
    """How many are drawn. Raises `UsageError` where one is, without replacement, or not of the first whole numbers."""
    here, size, replace = file.location(call), keyword(call, "size") or positional(call, 1), keyword(call, "replace") or positional(call, 2)
    if has_splat(call, "*") or has_splat(call, "**") or size is None or literal(size.value) is None:
        raise refuse(f"{here}: how many `{short(file.text(call))}` draws is not said")
    if replace is not None and literal(replace.value) is not True:
        raise refuse(f"{here}: `{short(file.text(call))}` may draw without replacement")
    of = positional(call, 0) or keyword(call, "a")
    value = of.value if of is not None else None
    counted = isinstance(value, cst.Call) and dotted(value.func) == "len"
    shaped = isinstance(value, cst.Subscript) and isinstance(value.value, cst.Attribute) and value.value.attr.value == "shape"
    if not (counted or shaped or isinstance(value, cst.Integer)):
        raise refuse(f"{here}: `{short(file.text(call))}` may draw of something other than the first whole numbers")
    return file.text(size.value)


def _kept(scene: Scene, file: PythonFile, call: cst.Call) -> tuple[str, cst.SimpleStatementLine]:
    """The field of the object that holds the weights, and the line of its constructor that makes them. Raises `UsageError`."""
    weights = keyword(call, "p").value  # type: ignore[union-attr]
    name, owner, here = dotted(weights) or "", file.class_around(call), file.location(call)
    if owner is None or not name.startswith("self.") or name.count(".") != 1:
        raise refuse(f"{here}: the weights `{short(file.text(weights))}` are no field of the object that draws")
    values, field = given_to(owner, name), name.removeprefix("self.")
    maker = file.function_around(values[0]) if len(values) == 1 else None
    line = file.statement(values[0]) if len(values) == 1 else None
    if maker is None or maker.name.value != "__init__" or line is None or not isinstance(values[0], FRESH) or len(line.body) != 1:
        raise refuse(f"{here}: {name} is not made once, by the constructor, of its own")
    elsewhere = [
        (other, node)
        for other in scene.project.parsed(field)
        for node in other.nodes
        for target in (targets_of(node) if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)) else ())
        if any(each.attr.value == field for each in descendants(target, cst.Attribute)) and not file.inside(values[0], node)  # type: ignore[attr-defined]
    ]
    if elsewhere or scales.touched_elsewhere(file, field, 1) or any(file.loops_around(line)):
        where = f" at {elsewhere[0][0].location(elsewhere[0][1])}" if elsewhere else ""
        raise refuse(f"{here}: {name} may change{where}")
    if has_slots(file, owner):
        raise refuse(f"{file.location(owner)}: its objects hold nothing but their slots")
    return name, line


def _uniform(file: PythonFile, call: cst.Call) -> str:
    """The function that draws uniform numbers from the same stream. Raises `UsageError` where it is not known."""
    if file.full_name(call.func) == GLOBAL:
        return file.text(call.func).removesuffix("choice") + "random_sample"
    stream = call.func.value  # type: ignore[attr-defined]
    scope = file.class_around(call) or file.module
    made = {file.full_name(value.func) for value in given_to(scope, dotted(stream) or "") if isinstance(value, cst.Call)}
    method = UNIFORM.get(next(iter(made)) or "") if len(made) == 1 else None
    if method is None or literal(stream) is not UNKNOWN:
        raise refuse(f"{file.location(call)}: what `{short(file.text(stream))}` draws from is not known to be numpy's")
    return f"{file.text(stream)}.{method}"
