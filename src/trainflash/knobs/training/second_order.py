"""Gradients of gradients: a fused kernel of attention cannot be differentiated a second time."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, keyword, positional, string_value

ARGUMENT = "create_graph"
PLACES = {"torch.autograd.grad": 4, "torch.autograd.backward": 3, "torch.autograd.functional.jacobian": 2}
OF_TENSOR = 2  # where `loss.backward(…)` takes it
TWICE = ("hessian", "hvp", "vhp", "jvp", "jacfwd", "gradgradcheck")  # of torch.func and torch.autograd
OF_TORCH = ("torch.func.", "torch.autograd.", "functorch.")


def none(project: Project) -> None:
    """Raises `UsageError` where the program differentiates gradients: the whole of what they went through must bear a second pass."""
    for file in project.parsed():
        for node in file.nodes:
            if _keeps_graph(file, node):
                reason = f"`{short(file.text(node))}` differentiates gradients, and fused attention has no second backward pass"
                raise refuse(f"{file.location(node)}: {reason}")


def _keeps_graph(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` says that gradients get a graph of their own, or may say so."""
    if isinstance(node, cst.DictElement):
        return string_value(node.key) == ARGUMENT and literal(node.value) is not False
    if not isinstance(node, cst.Call):
        return False
    name = file.full_name(node.func) or ""
    if name.startswith(OF_TORCH) and name.split(".")[-1] in TWICE:
        return True
    of_tensor = isinstance(node.func, cst.Attribute) and node.func.attr.value == "backward"
    given = keyword(node, ARGUMENT) or positional(node, PLACES.get(name, OF_TENSOR if of_tensor else None))
    return given is not None and literal(given.value) is not False
