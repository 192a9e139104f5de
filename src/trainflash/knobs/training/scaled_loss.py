"""What a trainer's float16 asks of the program: it scales the loss, so gradients are scaled until the trainer's own step unscales them.

A backward pass beside the trainer would leave the loss as it is, and the trainer divides its gradients all the same; what looks at
gradients in front of the step sees them scaled: https://docs.pytorch.org/docs/stable/notes/amp_examples.html. Numbers beyond 65504 have no
float16.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, targets_of

ACCELERATOR = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
UNSCALED = ("on_before_optimizer_step", "configure_gradient_clipping", "optimizer_step")  # hooks of Lightning's behind its unscaling
CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "get_total_norm", "clip_grads_with_norm_")
SEES = ("register_hook", "register_post_accumulate_grad_hook")
LARGEST = 65504  # of float16: torch.finfo(torch.float16).max
FILLS = ("masked_fill", "masked_fill_", "where", "full_like", "fill_")


def check(project: Project) -> None:
    """Raises `UsageError` where the program does something with the loss or its gradients that a scaled loss would change."""
    trainers = _accelerators(project)
    unscales = any(True for _ in project.parsed("unscale_gradients"))
    for file in project.parsed():
        for call in file.calls:
            _through_trainer(file, call, trainers)
            if not unscales:
                _sees_no_gradient(file, call)
            if callees.method_name(call) == "clip_gradients" and next(project.parsed("automatic_optimization"), None) is not None:
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` clips gradients while they are scaled")
            if callees.called_name(call) == "LBFGS":
                raise refuse(f"{file.location(call)}: LBFGS takes several backward passes in a step, which a scaled loss does not go with")
        for node in file.nodes:
            if not unscales and isinstance(node, cst.Attribute) and node.attr.value == "grad" and _reads(file, node):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` would be scaled here")
            if isinstance(node, (cst.Integer, cst.Float)) and _too_large(file, node):
                raise refuse(f"{file.location(node)}: float16 has no number as large as {file.text(node)}")
    if _made(project):
        _all_prepared(project)


def _accelerators(project: Project) -> set[str]:
    """Names that hold an Accelerator."""
    lines = [file.parent(call) for file, call in _made(project)]
    return {(dotted(each) or "").split(".")[-1] for line in lines if line is not None for each in targets_of(line)} | {"accelerator"}


def _made(project: Project) -> list[tuple[PythonFile, cst.Call]]:
    calls = [(file, call) for file in project.parsed("Accelerator") for call in file.calls]
    return [(file, call) for file, call in calls if file.full_name(call.func) in ACCELERATOR]


def _through_trainer(file: PythonFile, call: cst.Call, trainers: set[str]) -> None:
    """A backward pass is the trainer's; one in a method `backward` is that of a loss that is scaled already, or of a function."""
    if callees.method_name(call) != "backward":
        return
    holder = (dotted(call.func.value) or "").split(".")[-1]  # type: ignore[attr-defined]
    around = file.function_around(call)
    if holder not in trainers and (around is None or around.name.value != "backward"):
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` goes past the trainer, which would not scale this loss")


def _sees_no_gradient(file: PythonFile, call: cst.Call) -> None:
    name = callees.called_name(call)
    of_torch = (file.full_name(call.func) or "").startswith("torch.nn.utils.")
    if (of_torch and name in CLIPS and not _unscaled(file, call)) or name in SEES:
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` would see gradients that are scaled")


def _reads(file: PythonFile, node: cst.Attribute) -> bool:
    """Whether more is done with a gradient than to take it away or ask whether there is one."""
    if (file.full_name(node) or "").startswith("torch.") or _unscaled(file, node):
        return False
    up = file.parent(node)
    if isinstance(up, cst.Comparison):
        return any(not isinstance(each.operator, (cst.Is, cst.IsNot)) for each in up.comparisons)
    if isinstance(up, cst.AssignTarget):
        return dotted(file.parent(up).value) != "None"  # type: ignore[union-attr]
    return not isinstance(up, cst.Del) and not (isinstance(up, cst.Attribute) and up.attr.value == "zero_")


def _unscaled(file: PythonFile, node: cst.CSTNode) -> bool:
    around = file.function_around(node)
    return around is not None and around.name.value in UNSCALED


def _too_large(file: PythonFile, node: cst.Integer | cst.Float) -> bool:
    """Whether a network computes with a number that float16 cannot hold: fills it in, or multiplies by it."""
    value, function = literal(node), file.function_around(node)
    owner = file.class_of(function) if function is not None else None
    if value is UNKNOWN or abs(value) <= LARGEST or owner is None:
        return False
    if not any(each.name.value == "forward" for each in descendants(owner, cst.FunctionDef)):  # type: ignore[attr-defined]
        return False
    for up in file.ancestors(node):
        if isinstance(up, cst.Call):
            return callees.called_name(up) in FILLS
        if isinstance(up, cst.BinaryOperation):
            return isinstance(up.operator, cst.Multiply)
        if isinstance(up, cst.BaseSmallStatement):
            return False
    return False


def _all_prepared(project: Project) -> None:
    """With an Accelerator, each optimizer is handed to `prepare`, or its step would take gradients that are still scaled."""
    prepares = [
        call for file in project.parsed("prepare") for call in file.calls if callees.method_name(call) in ("prepare", "prepare_optimizer")
    ]
    handed = {name.value for call in prepares for arg in call.args for name in descendants(arg, cst.Name)}  # type: ignore[attr-defined]
    for file in project.parsed("optim"):
        for call in file.calls:
            line = file.parent(call)
            made = (file.full_name(call.func) or "").startswith("torch.optim.") and "lr_scheduler" not in (file.full_name(call.func) or "")
            names = {(dotted(each) or "").split(".")[-1] for each in targets_of(line)} if made and line is not None else set()
            if names and not names & handed:
                raise refuse(f"{file.location(call)}: this optimizer is not handed to `prepare`, so its gradients would stay scaled")
