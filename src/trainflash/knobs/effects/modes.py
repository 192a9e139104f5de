"""In which mode a network runs, training or evaluation, and which networks do the same in both."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import harmless
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, own_classes
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, base_names, descendants

DEEPEST = 3  # own: networks in networks


def left(project: Project, file: PythonFile, call: cst.Call, function: cst.FunctionDef | None) -> str | None:
    """Why `x.eval()` or `x.train()` leaves the network in another mode than before; None where the same function takes it back."""
    base = file.text(call.func.value)  # type: ignore[union-attr]
    calls = list(descendants(function.body, cst.Call)) if function is not None else []
    switched = [each for each in calls if callees.method_name(each) in ("eval", "train") and file.text(each.func.value) == base]  # type: ignore[arg-type,attr-defined]
    last = max(switched, key=lambda each: file.span(each)[0], default=None)
    if last is None or callees.method_name(last) != "train" or callees.method_name(switched[0]) == "train":  # type: ignore[arg-type]
        return "leaves the network in another mode"
    known = bool(last.args) or _trains_by_itself(project, function)  # type: ignore[attr-defined]
    return None if known else "may be what puts the network into training mode"


def _trains_by_itself(project: Project, function: cst.FunctionDef | None) -> bool:
    """Whether the network was in training mode before: somebody puts it there for good, or nobody out of it but evaluations."""
    trains = evals = False
    for where in project.parsed():
        for call in where.calls:
            name = callees.method_name(call)
            inside = function is not None and where.inside(call, function)
            if name == "train" and not inside and not call.args:
                trains = trains or not callees.switches_mode(where, call)
            evals = evals or name == "from_pretrained" or (name == "eval" and not inside and not _taken_back(where, call))
    return trains or not evals


def _taken_back(file: PythonFile, call: cst.Call) -> bool:
    around, base = file.function_around(call) or file.module, file.text(call.func.value)  # type: ignore[union-attr]
    calls = descendants(around, cst.Call)
    return any(callees.method_name(each) == "train" and file.text(each.func.value) == base for each in calls)  # type: ignore[arg-type,attr-defined]


def stateless(project: Project, file: PythonFile, owner: cst.ClassDef, depth: int = 0) -> bool:
    """Whether a network's class is made of layers that do the same in each mode, and asks for no mode."""
    if depth > DEEPEST or not base_names(owner) <= {"Module", "Sequential"}:
        return False
    for node in descendants(owner, (cst.Call, cst.Attribute)):
        if isinstance(node, cst.Attribute):
            if node.attr.value in ("training", "register_buffer"):
                return False
        elif callees.called_name(node)[:1].isupper() and not harmless.stateless(file, node):
            inner = own_classes.class_of(project, (file, node), any_class=True)
            if inner is None or not stateless(project, *inner, depth + 1):
                return False
    return True


def switched(file: PythonFile, text: str) -> bool:
    """Whether `text` is a network: asked for its parameters, or switched."""
    asked = {"eval", "train", "parameters", "named_parameters", "state_dict", "load_state_dict"}
    return any(callees.method_name(call) in asked and file.text(call.func.value) == text for call in file.calls)  # type: ignore[attr-defined]


def evaluates(file: PythonFile, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether the network that is called was put into evaluation mode in the same function, and not taken out of it in between."""
    text, at = file.text(call.func), file.span(call)[0]
    last = None
    for each in descendants(function.body, cst.Call):
        if callees.method_name(each) in ("eval", "train") and file.text(each.func.value) == text and file.span(each)[0] < at:  # type: ignore[arg-type,attr-defined]
            last = each
    if last is None or callees.method_name(last) != "eval":  # type: ignore[arg-type]
        return False
    return not any(isinstance(up, (cst.If, *LOOPS)) and not file.inside(call, up) for up in file.ancestors(last))
