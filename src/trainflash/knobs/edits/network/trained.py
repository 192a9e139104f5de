"""Edits about the trained network: a statement in front of its optimizer, and a context around forward and loss."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.network import fits
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.kinds import ForwardBlock, ModelStatement
from trainflash.knobs.reading.expressions import UNKNOWN, assigned, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import half_types

OPTIMIZERS = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Rprop", "LBFGS", "Adafactor", "Muon")
GIVES = ("parameters", "named_parameters")
OTHER_TYPE = ("float", "double", "argmax", "argmin", "argsort", "long", "int", "bool")  # what these give is not of autocast's type
TAKEN_OVER = ("prepare", "fit", "initialize")  # accelerate, Lightning or HF, DeepSpeed: they place and wrap the network themselves


def trained(scene: Scene) -> tuple[PythonFile, cst.Call, str]:
    """The call that builds the optimizer, and the network's name there. Raises `UsageError` where it is not one plain name."""
    file, call = _optimizer(scene)
    names = _networks(file, call, 0)
    if "" in names:
        raise refuse(f"{file.location(call)}: the network whose parameters the optimizer is given has no name of its own there")
    if len(names) != 1:
        listed = ", ".join(sorted(names)) or "none is named"
        raise refuse(f"{file.location(call)}: the optimizer is not given the parameters of one network ({listed})")
    return file, call, names.pop()


def _optimizer(scene: Scene) -> tuple[PythonFile, cst.Call]:
    updates = scene.summary.updates
    if updates is not None and updates.optimizers > 1:
        raise refuse(f"{updates.optimizers} optimizers train several networks")
    place = updates.location if updates is not None else None
    if place is not None and not scene.project.owns(place):
        raise refuse(f"the optimizer is made at {place}, outside this project")
    tails = {updates.optimizer} if updates is not None and place is not None else set(OPTIMIZERS)
    files = [scene.project.python(place.file)] if place is not None else list(scene.project.parsed())
    exact, loose = [], []
    for file in files:
        for call in file.calls:
            here = place is not None and file.covers(call, place.line)
            named = (file.full_name(call.func) or "").split(".")[-1] in tails
            near = here and _networks(file, call, 0)
            if named and (place is None or here):
                exact.append((file, call))
            elif near and not isinstance(call.func, cst.Attribute):
                loose.append((file, call))
    found = exact or loose
    found = [(file, call) for file, call in found if not any(call is not each and file.inside(call, each) for _, each in found)]
    if len(found) != 1:
        places = ", ".join(str(file.location(call)) for file, call in found[:4])
        raise refuse(f"the line that builds the optimizer is not the only one: {places}" if found else "no line builds an optimizer")
    return found[0]


def _networks(file: PythonFile, node: cst.CSTNode, depth: int) -> set[str]:
    """Names in front of `.parameters()` in `node`, and in what the plain names in it were assigned."""
    found: set[str] = set()
    for inner in descendants(node, cst.Call):
        if isinstance(inner.func, cst.Attribute) and inner.func.attr.value in GIVES:
            found.add(_name(file, inner.func.value))
    if found or depth > 2:
        return found
    for name in descendants(node, cst.Name):
        scope = file.scope(name)
        for assignment in scope[name.value] if scope is not None else ():
            value = assigned(file, getattr(assignment, "node", None)) if hasattr(assignment, "node") else None
            if value is not None and not file.inside(node, value):
                found |= _networks(file, value, depth + 1)
    return found


def _name(file: PythonFile, node: cst.BaseExpression) -> str:
    """A chain of names and typed keys, such as `self.nets["policy"]`; empty for anything else."""
    base = node
    while isinstance(base, (cst.Attribute, cst.Subscript)):
        if isinstance(base, cst.Subscript):
            keys = [part.slice.value for part in base.slice if isinstance(part.slice, cst.Index)]
            if len(keys) != 1 or len(base.slice) != 1 or literal(keys[0]) is UNKNOWN:
                return ""
        base = base.value
    text = file.text(node)
    return text if isinstance(base, cst.Name) and "\n" not in text else ""


def model_statement(edit: ModelStatement, scene: Scene) -> tuple[Target, ...]:
    """The line in front of the statement that builds the optimizer, or the place in front of it in a line of several."""
    file, call, model = trained(scene)
    here = file.location(call)
    fits.statement(edit, scene.project, file, call, model)
    for other in scene.project.parsed():
        for each in other.calls:
            name = each.func.attr.value if isinstance(each.func, cst.Attribute) else dotted(each.func) or ""
            if other.full_name(each.func) in edit.absent or f"*.{name}" in edit.absent:
                raise refuse(f"{other.location(each)}: `{other.text(each.func)}` is called here already")
    statement = next(up for up in (call, *file.ancestors(call)) if isinstance(up, (cst.SimpleStatementLine, cst.BaseCompoundStatement)))
    if not isinstance(statement, cst.SimpleStatementLine):
        raise refuse(f"{here}: the optimizer is built within a larger statement")
    small = next(each for each in statement.body if file.inside(call, each))
    start = file.span(small)[0]
    behind = "; " if small is not statement.body[0] else f"{file.newline}{file.indent(small)}"
    text, needed = edit.statement.replace("{model}", model), ()
    for name in re.findall(r"\btorch\.(\w+)", edit.statement):
        spelled, needed = imports.reach(file, "torch", name)
        text = text.replace(f"torch.{name}", spelled)
    if any(file.text(each) == text for each in file.calls):
        raise refuse(f"{here}: `{text}` is called in this file already")

    def write(value: Any) -> tuple[Splice, ...]:
        return (*needed, Splice(file.path, start, start, f"{text}{behind}"))

    return (Target(here, None, write, f"{model}, in front of its optimizer at {here}", edit.label),)


def forward_block(edit: ForwardBlock, scene: Scene) -> tuple[Target, ...]:
    """Statements from the first that calls the network to the one in front of `.backward()`, in one block."""
    for other in scene.project.parsed():
        for call in other.calls:
            if other.full_name(call.func) in edit.absent:
                raise refuse(f"{other.location(call)}: `{other.text(call.func)}` is used here already")
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in TAKEN_OVER:
                raise refuse(f"{other.location(call)}: `{other.text(call.func)}` takes over the training, set it there")
    _, _, model = trained(scene)
    file, backward = _backward(scene)
    line = file.statement(backward)
    block = file.parent(line) if line is not None else None
    if line is None or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        raise refuse(f"{file.location(backward)}: backward is part of a larger statement")
    here = file.location(backward)
    if _calls(file, line, model):
        raise refuse(f"{here}: forward and backward are one statement")
    body = list(block.body)
    last = body.index(line) - 1
    while last >= 0 and _is_call(body[last], "zero_grad"):
        last -= 1
    first = next((number for number in range(last + 1) if _calls(file, body[number], model)), None)
    if first is None:
        raise refuse(f"{here}: the statements in front of backward do not call {model}")
    region = body[first : last + 1]
    for statement in region:
        if any(isinstance(node, cst.Call) and _tail(node) in ("step", "backward", "unscale_") for node in _nodes(statement)):
            raise refuse(f"{file.location(statement)}: updates stand between forward and backward")
        if (text := long_text(file, statement)) is not None:
            raise refuse(f"{file.location(text)}: a text of several lines would be moved")
    _no_arrays(file, region, backward)
    half_types.bears(scene.project)
    splices = _indented(file, region, edit, scene)
    return (Target(file.location(region[0]), None, lambda value: splices, f"forward and loss before {here}", _context(edit, scene)),)


def _no_arrays(file: PythonFile, region: list[Any], backward: cst.Call) -> None:
    """Raises `UsageError` where what `region` computes becomes a numpy array: numpy has no bfloat16. The loss is float32 there."""
    bound = [part for assign in (each for line in region for each in descendants(line, cst.Assign)) for part in assign.targets]
    names = {name.value for part in bound for name in descendants(part.target, cst.Name)} - {dotted(backward.func.value)}  # type: ignore[union-attr]
    around = file.function_around(backward) or file.module
    for call in descendants(around, cst.Call):
        steps, node = [], call.func
        while isinstance(node, (cst.Attribute, cst.Call, cst.Subscript)):
            steps.append(node.attr.value if isinstance(node, cst.Attribute) else file.text(node) if isinstance(node, cst.Call) else "")
            node = node.func if isinstance(node, cst.Call) else node.value
        cast = any(step in OTHER_TYPE or (".to(" in step and "float" in step) for step in steps)
        if steps[:1] == ["numpy"] and isinstance(node, cst.Name) and node.value in names and not cast:
            raise refuse(f"{file.location(call)}: `{file.text(call)}` would be of a type that numpy does not have")


def _backward(scene: Scene) -> tuple[PythonFile, cst.Call]:
    found = [(file, call) for file in scene.project.parsed("backward") for call in file.calls if _tail(call) == "backward"]
    found = [(file, call) for file, call in found if not _in_class_of_function(file, call)]
    if len(found) != 1:
        places = ", ".join(str(file.location(call)) for file, call in found[:4])
        raise refuse(f"backward is called at several places: {places}" if found else "backward is called nowhere in the program")
    file, call = found[0]
    if call.args and not any(arg.keyword is not None for arg in call.args):
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is not a plain backward pass")
    return file, call


def _in_class_of_function(file: PythonFile, call: cst.Call) -> bool:
    return any(
        isinstance(up, cst.ClassDef) and any("Function" in file.text(base.value) for base in up.bases) for up in file.ancestors(call)
    )


def _tail(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _nodes(node: cst.CSTNode) -> list[cst.CSTNode]:
    return list(descendants(node, cst.CSTNode))


def _is_call(statement: cst.CSTNode, tail: str) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1 or not isinstance(statement.body[0], cst.Expr):
        return False
    value = statement.body[0].value
    return isinstance(value, cst.Call) and _tail(value) == tail


def _calls(file: PythonFile, node: cst.CSTNode, model: str) -> bool:
    """Whether `node` calls the network by its name, or by the same last name, as where it was handed to a function."""
    tail = model.split(".")[-1]
    return any((dotted(call.func) or "").split(".")[-1] == tail for call in descendants(node, cst.Call))


def _context(edit: ForwardBlock, scene: Scene) -> str:
    return edit.context.format(device=scene.facts.get("device"))


def _indented(file: PythonFile, region: list[Any], edit: ForwardBlock, scene: Scene) -> tuple[Splice, ...]:
    context = _context(edit, scene)
    module, name = edit.module, edit.context.split("(")[0].removeprefix(f"{edit.module}.")
    spelled, needed = imports.reach(file, module, name)
    alias = spelled.removesuffix(f".{name}") if spelled.endswith(f".{name}") else None
    if alias is None:
        raise refuse(f"{file.path}: {name} was imported by name; {edit.module} itself is needed")
    context = context.replace(f"{module}.", f"{alias}.")
    start, end = file.span(region[0])[0], file.span(region[-1])[1]
    return (*needed, *under(file, f"with {context}:", start, end, file.indent(region[0])))
