"""Compute on reading: a field that each step computes anew, and that the program reads now and then, becomes a property.

`self.latest = self.compute()` in a meter's `update`, and `print(meter.latest)` in one step of a hundred. The field is computed where it is
read, from what the object holds then; so nothing that it is made of may change without the field being set anew, and whatever else sets
the field sets it as before.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.cadence import every_step
from trainflash.knobs.edits.statements import long_text
from trainflash.knobs.effects import fields, given, purity, quiet
from trainflash.knobs.kinds import OnReading
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import is_name, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    decorator_names,
    descendants,
    dotted,
    has_slots,
    methods_of,
    own_field,
    parameter_names,
    sole,
)
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

WITHOUT_GRADIENTS = ("torch.no_grad", "torch.inference_mode")
MAKERS = ("__init__", "__post_init__", "__new__")


def on_reading(edit: OnReading, scene: Scene) -> tuple[Target, ...]:
    """The assignment to a field of `self` nearest to the finding's line.

    Raises `UsageError` without one, and where the field could have another value when it is read.
    """
    reasons = []
    for level in every_step.of_finding(scene):
        line = _within(level.statement)
        field = _field(line)
        if field is None:
            continue
        try:
            return (_target(scene.project, level.file, line, field),)
        except UsageError as bad:
            reasons.append(bad)
    raise reasons[0] if reasons else refuse(f"{scene.at or 'the line'}: what is computed there is no field of `self`")


def _within(statement: cst.CSTNode) -> cst.CSTNode:
    """The only line below a `with`, or the statement itself."""
    while isinstance(statement, cst.With) and len(statement.body.body) == 1:
        statement = statement.body.body[0]
    return statement


def _field(line: cst.CSTNode) -> str | None:
    """The name of the field that a line sets, and nothing else."""
    assign = sole(line)
    return own_field(assign.targets[0].target) if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None


def _target(project: Project, file: PythonFile, line: cst.CSTNode, field: str) -> Target:
    here, assign = file.location(line), sole(line)
    assert isinstance(assign, cst.Assign)
    function = file.function_around(line)
    owner = file.class_of(function) if function is not None else None
    if function is None or owner is None or function.name.value in MAKERS:
        raise refuse(f"{here}: does not stand in a method")
    without = _gradients(file, function, line)
    methods = {each.name.value for each in methods_of(owner)}
    read = purity.fields_read(owner, assign.value)
    _plain_field(project, file, owner, field, methods)
    _made_of_fields(project, file, function, owner, assign, read - methods)
    other = fields.also_defined(project, owner, (read & methods) | {function.name.value})
    if other is not None:
        raise refuse(f"{other}: another class makes something else of what {owner.name.value} computes")
    _set_with_it(project, file, function, owner, assign, field, read - methods)
    found = quiet.Quiet(project).look(file, [assign.value])
    if found.told:
        raise refuse(found.told)
    splices = _written(file, function, line, assign, field, without)
    target = Target(here, None, lambda value: splices, f"`self.{field}` at {here}", "computed where it is read")
    return replace(target, risk="order", because=found.drawn) if found.drawn else target


def _gradients(file: PythonFile, function: cst.FunctionDef, line: cst.CSTNode) -> str:
    """The context without gradients in which the line stands, as it is written there; empty without one.

    Raises `UsageError` where the line may not run in each call, or not just once.
    """
    without = next((each for each in function.decorators if (file.full_name(_called(each.decorator)) or "") in WITHOUT_GRADIENTS), None)
    strange = set(decorator_names(file, function)) - set(WITHOUT_GRADIENTS)
    if strange:
        raise refuse(f"{file.location(function)}: it is decorated by {sorted(strange)[0]}")
    text = file.text(_called(without.decorator)) + "()" if without is not None else ""
    for up in file.ancestors(line):
        if up is function:
            return text
        if isinstance(up, cst.With):
            items = [each.item for each in up.items]
            if len(items) != 1 or (file.full_name(_called(items[0])) or "") not in WITHOUT_GRADIENTS:
                raise refuse(f"{file.location(up)}: what `with` does there is not done where the field is read")
            text = file.text(items[0])
        elif not isinstance(up, cst.IndentedBlock):
            raise refuse(f"{file.location(up)}: the field is not set in each call")
    return text


def _called(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.func if isinstance(node, cst.Call) else node


def _plain_field(project: Project, file: PythonFile, owner: cst.ClassDef, field: str, methods: set[str]) -> None:
    """Raises `UsageError` where a property of that name would be something else than the field."""
    here = file.location(owner)
    if has_slots(file, owner):
        raise refuse(f"{here}: {owner.name.value} has slots")
    if purity.reached_by_text(project):
        raise refuse(f"{here}: the program reaches fields by other ways than their names")
    known = {name for each in owner.body.body if not isinstance(each, (cst.FunctionDef, cst.ClassDef)) for name in given.bound(each)}
    if field in known | methods:
        raise refuse(f"{here}: {owner.name.value} has a `{field}` of its own")
    taken = next((each for each in (f"_{field}", f"_{field}_is_due") if any(True for _ in project.parsed(each))), None)
    if taken is not None:
        raise refuse(f"{here}: the program has a name `{taken}`")


def _made_of_fields(
    project: Project, file: PythonFile, function: cst.FunctionDef, owner: cst.ClassDef, assign: cst.Assign, held: set[str]
) -> None:
    """Raises `UsageError` where the value is made of what is not there any more when the field is read; `held` are the fields among it."""
    here = file.location(assign)
    local = (given.bound(function.body) | parameter_names(function)) - {"self"}
    gone = next((each for each in descendants(assign.value, cst.Name) if each.value in local and is_name(file, each)), None)  # type: ignore[attr-defined]
    if gone is not None:
        raise refuse(f"{here}: it is made of `{gone.value}`, which is gone where the field is read")  # type: ignore[attr-defined]
    if any(True for _ in descendants(assign.value, (cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda))):
        raise refuse(f"{here}: `{short(file.text(assign.value))}` does more than compute")
    if not any(own_field(each) is not None for each in descendants(assign.value, cst.Attribute)):
        raise refuse(f"{here}: it is made of nothing that the object holds")
    for name in sorted(held):
        if not fields.made_within(project, file, owner, name):
            raise refuse(f"{here}: what `self.{name}` holds came from elsewhere, and may change there")


def _set_with_it(
    project: Project, file: PythonFile, function: cst.FunctionDef, owner: cst.ClassDef, assign: cst.Assign, field: str, held: set[str]
) -> None:
    """Raises `UsageError` where something that the field is made of may change, and the field is not set anew with it."""
    begin = file.span(assign)[0]
    starts = [each for call in descendants(assign.value, cst.Call) for each in callees.meant(project, file, call)]  # type: ignore[arg-type]
    asks = {id(each) for _, each in callees.reached(project, starts)}  # they change nothing
    for where, node in fields.changes(project, owner, held):
        around = where.function_around(node)
        if around is not None and id(around) in asks:
            continue
        inside = where is file and around is not None and where.class_of(around) is owner and dotted(node.value) == "self"
        before = around is function and where.span(node)[0] < begin
        anew = inside and around is not function and (around.name.value in MAKERS or _sets(around, field))  # type: ignore[union-attr,arg-type]
        if not inside or not (before or anew):
            raise refuse(f"{where.location(node)}: `{where.text(node)}` may change there, and `self.{field}` is not set anew with it")


def _sets(function: cst.FunctionDef, field: str) -> bool:
    """Whether each call of a method sets the field."""
    lines = [sole(each) for each in function.body.body]
    return any(isinstance(each, cst.Assign) and any(own_field(target.target) == field for target in each.targets) for each in lines)


# Writing --------------------------------------------------------------------------------------------------------------------------


def _written(
    file: PythonFile, function: cst.FunctionDef, line: cst.CSTNode, assign: cst.Assign, field: str, without: str
) -> tuple[Splice, ...]:
    """The property in front of the method, and a mark where the field was computed."""
    if long_text(file, assign) is not None:
        raise refuse(f"{file.location(assign)}: a text in it goes over several lines")
    one, kept, due = file.module.default_indent, f"_{field}", f"_{field}_is_due"
    value = file.text(assign).replace(f"\n{file.indent(line)}", f"\n{one * (3 if without else 2)}")
    asked = [f"with {without}:", f"{one}{value}"] if without else [value]
    lines = [
        f"{due} = False",
        "",
        "@property",
        f"def {field}(self):",
        f"{one}if self.{due}:",
        *(f"{one * 2}{each}" for each in asked),
        f"{one}return self.{kept}",
        "",
        f"@{field}.setter",
        f"def {field}(self, value):",
        f"{one}self.{kept}, self.{due} = value, False",
        "",
    ]
    start, indent = file.span((*function.decorators, function)[0])[0], file.indent(function)
    text = "".join(f"{indent}{each}".rstrip() + file.newline for each in "\n".join(lines).split("\n"))
    return (
        Splice(file.path, start, start, f"{text}{indent}".removeprefix(indent)),
        Splice(file.path, *file.span(assign), f"self.{due} = True"),
    )
