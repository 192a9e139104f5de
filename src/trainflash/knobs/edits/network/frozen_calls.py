"""A network that nobody trains records for no backward pass: the statement that calls it comes under `torch.no_grad()`.

The run saw that its inputs need no gradient and that no optimizer holds a parameter of it, or that the gradients of this very call were
always thrown away. So nothing in the statement may need one but the call: around it stand parts, methods and functions of torch with
literal arguments alone.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.kinds import FrozenCall
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.schema import Location

HOOKS = ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")
LATER = ("add_param_group", *HOOKS)
OF_TENSORS = {"bool", "clone", "contiguous", "cpu", "cuda", "detach", "double", "flatten", "float", "half", "long", "permute", "repeat"}
OF_TENSORS |= {"reshape", "size", "squeeze", "to", "transpose", "type", "unsqueeze", "view"}
WITHOUT = ("torch.no_grad", "torch.inference_mode")
PARTS = (cst.Subscript, cst.Attribute)


def frozen_call(edit: FrozenCall, scene: Scene) -> tuple[Target, ...]:
    """The statement at the line that the run saw. Raises `UsageError` where more than the call may need a gradient, or may later."""
    seen = scene.facts.get("in_vain")
    place = scene.at or (seen.location if seen is not None else None)
    if place is None or not scene.project.owns(place):
        raise refuse("the run saw no module whose gradients no optimizer takes, called in this project's own source")
    file = scene.project.python(place.file)
    statement, value = _statement(file, place)
    call = _called(file, value)
    if any(_records_nothing(file, up) for up in file.ancestors(statement)):
        raise refuse(f"{file.location(statement)}: it is called without gradients already")
    _stays_frozen(scene.project, held=seen is not None and seen.held)
    if long_text(file, statement) is not None:
        raise refuse(f"{file.location(statement)}: a text in it goes over several lines")
    spelled, needed = imports.reach(file, "torch", "no_grad")
    around = under(file, f"with {spelled}():", *file.span(statement), file.indent(statement))
    what = f"`{short(file.text(call.func))}` at {file.location(call)}"
    return (Target(file.location(call), None, lambda value: (*needed, *around), what, spelled),)


def _records_nothing(file: PythonFile, block: cst.CSTNode) -> bool:
    items = [item.item for item in block.items] if isinstance(block, cst.With) else []
    return any(isinstance(each, cst.Call) and file.full_name(each.func) in WITHOUT for each in items)


def _statement(file: PythonFile, place: Location) -> tuple[cst.SimpleStatementLine, cst.BaseExpression]:
    """The one statement at the line, and what it assigns or returns."""
    here = [node for node in file.each(cst.SimpleStatementLine) if file.covers(node, place.line)]
    small = sole(here[0]) if len(here) == 1 else None
    value = small.value if isinstance(small, (cst.Assign, cst.AnnAssign, cst.Return)) else None
    if value is None:
        raise refuse(f"{place}: no statement of its own that keeps or returns what a module gives")
    return here[0], value


def _called(file: PythonFile, value: cst.BaseExpression) -> cst.Call:
    """The call of the module in `value`. Raises `UsageError` where anything beside it may need a gradient."""
    node = value
    while not isinstance(node, cst.Call) or _of_torch(file, node) or _of_result(node):
        inner = _within(file, node)
        if inner is None:
            raise refuse(f"{file.location(value)}: more than one part of `{short(file.text(value))}` may need a gradient")
        node = inner
    beside = [each for arg in node.args for each in descendants(arg, cst.Call) if not _of_torch(file, each) and not _of_tensor(each)]  # type: ignore[arg-type]
    if beside:
        raise refuse(f"{file.location(value)}: `{short(file.text(beside[0]))}` may need a gradient too")
    return node


def _within(file: PythonFile, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The one part of `node` that is more than a literal; None where there is no such, or where it cannot be told."""
    if isinstance(node, cst.Call):
        parts = [arg.value for arg in node.args]
        parts += [node.func.value] if isinstance(node.func, cst.Attribute) and not _of_torch(file, node) else []
    elif isinstance(node, cst.Subscript):
        plain = all(not any(descendants(part, cst.Call)) for part in node.slice)
        parts = [node.value] if plain else []
    elif isinstance(node, cst.Attribute):
        parts = [node.value]
    elif isinstance(node, cst.BinaryOperation):
        parts = [node.left, node.right]
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        parts = [node.elt]
    else:
        return None
    left = [part for part in parts if not _literal(part)]
    return left[0] if len(left) == 1 else None


def _literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_literal(element.value) for element in node.elements)
    return literal(node) is not UNKNOWN


def _of_torch(file: PythonFile, call: cst.Call) -> bool:
    return (file.full_name(call.func) or "").startswith("torch.")


def _of_tensor(call: cst.Call) -> bool:
    return callees.method_name(call) in OF_TENSORS


def _of_result(call: cst.Call) -> bool:
    """Whether it is a method of what another call gives: `teacher(x).softmax(-1)`."""
    node = call.func
    while isinstance(node, PARTS):
        node = node.value
    return isinstance(node, cst.Call)


def _stays_frozen(project: Project, *, held: bool) -> None:
    """Raises `UsageError` where the program may train later what it does not train now, or looks at all gradients of a backward pass.

    `held`: it is trained, with the gradients of other calls.
    """
    for file in project.parsed():
        for call in file.calls:
            name = callees.method_name(call) or (dotted(call.func) or "").split(".")[-1]
            on = name == "requires_grad_" and (not call.args or literal(call.args[0].value) is not False)
            on = on and keyword(call, "requires_grad") is None and not held
            if name in (HOOKS if held else LATER) or on:
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may ask for gradients later")
        for assign in file.each(cst.Assign):
            sets = any(isinstance(each.target, cst.Attribute) and each.target.attr.value == "requires_grad" for each in assign.targets)
            if sets and literal(assign.value) is not False and not held:
                raise refuse(f"{file.location(assign)}: `{short(file.text(assign))}` may ask for gradients later")
