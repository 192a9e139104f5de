"""Weights and activations that are looked at as one row of numbers: `view` cannot where they lie in memory as channels_last."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, derived, own_classes
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

JOINS = ("parameters_to_vector", "vector_to_parameters")
STORED = ("data", "grad")  # attributes of a weight that lie in memory as it does
WEIGHTS = ("parameters", "named_parameters", "param_groups", "state_dict")
SMALL = ("avg_pool", "AvgPool", "daptive", "mean(", "contiguous", "flatten", "Flatten", "reshape")  # behind these a view is possible


def none(project: Project) -> None:
    """Raises `UsageError` where weights, their gradients or the result of a convolution are viewed as a row."""
    for file in project.parsed():
        for call in file.calls:
            if callees.called_name(call).split(".")[-1] in JOINS or (callees.method_name(call) == "view" and _of_weight(file, call)):
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` cannot look at weights that are channels_last")
    for file, owner in derived.classes(project, (own_classes.MODULE,)):
        convolves = any((file.full_name(call.func) or "").endswith("Conv2d") for call in descendants(owner.body, cst.Call))  # type: ignore[attr-defined]
        if not convolves or any(word in file.text(owner) for word in SMALL):
            continue
        for call in descendants(owner.body, cst.Call):
            if callees.method_name(call) == "view" and _in_rows(call):  # type: ignore[arg-type]
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` cannot look at images that are channels_last")


def _in_rows(call: cst.Call) -> bool:
    """`x.view(n, -1)` and `x.view(-1, n)`."""
    return len(call.args) == 2 and any(literal(arg.value) == -1 for arg in call.args)


def _of_weight(file: PythonFile, call: cst.Call) -> bool:
    """Whether a view is of `….weight`, of a gradient, or of what a loop takes from the parameters."""
    node, stored = call.func.value, False  # type: ignore[attr-defined]
    while isinstance(node, cst.Call) and callees.method_name(node) == "detach":
        node = node.func.value  # type: ignore[attr-defined]
    while isinstance(node, cst.Attribute) and node.attr.value in STORED:
        stored, node = stored or node.attr.value == "grad", node.value
    if stored or (isinstance(node, cst.Attribute) and node.attr.value == "weight"):
        return True
    name = dotted(node)
    return name is not None and any(_over_weights(loop, name) for loop in (file.ancestors(call)) if _loops(loop))


def _loops(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.For) or getattr(node, "for_in", None) is not None


def _over_weights(loop: cst.CSTNode, name: str) -> bool:
    over = loop if isinstance(loop, cst.For) else loop.for_in  # type: ignore[attr-defined]
    given = any(node.value == name for node in descendants(over.target, cst.Name))  # type: ignore[attr-defined]
    return given and any(node.value in WEIGHTS for node in descendants(over.iter, cst.Name))  # type: ignore[attr-defined]
