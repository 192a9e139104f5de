"""What is computed again in backward, and what it does beside computing: it counts a batch twice, or its inputs carry no gradient."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import argument_node, given_to, literal, passed, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    elements_of,
    keyword,
    methods_of,
    parameter,
    targets_of,
    unsubscripted,
)

WRAPPERS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
SWITCHES = ("gradient_checkpointing", "gradient_checkpointing_enable", "set_grad_checkpointing", "apply_activation_checkpointing")
# Layers that change with each pass in training mode, whoever calls them: running statistics, estimates of the largest singular value.
COUNTS = {
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm", "batch_norm",
    "convert_sync_batchnorm", "spectral_norm", "SpectralNorm", "track_running_stats",
}  # fmt: skip
PLAIN_FAMILIES = ("beit", "convnext", "deit", "eva", "maxxvit_rmlp", "mixer", "swin", "vit")  # of timm and torchvision, without such layers
TRAINED = ("Bilinear", "Conv", "Embedding", "GRU", "GroupNorm", "LSTM", "LayerNorm", "Linear", "Multihead", "Parameter", "RMSNorm", "RNN")
FREEZES = ("requires_grad = False", "requires_grad=False", "requires_grad_(False)", "freeze")
DEEPEST = 4  # own: modules inside each other that hand on their input

Part = tuple[PythonFile, cst.CSTNode]


def counts_nothing(project: Project, file: PythonFile, target: cst.BaseExpression | None) -> None:
    """Raises `UsageError` where what `target` calls, or anything in the program without one, changes with each pass, and runs twice now."""
    parts = _parts(project, file, target) if target is not None else None
    if parts is None:
        parts = [(each, each.module) for each in project.parsed()]
    for where, part in parts:
        for node in descendants(part, (cst.Name, cst.Call, cst.AugAssign)):
            told = _counted(where, node)
            if told is not None:
                raise refuse(f"{where.location(node)}: `{short(where.text(node))}` {told}, which now happens twice for a batch")


def reentrant(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether the wrapper runs without gradients first; it does so where it is not told, or told what is not known."""
    given = argument_node(file, call, "use_reentrant", None) or _bound(file, call)
    if given is None:
        return True
    if literal(given) is False:
        return False
    found = sources.known(project, file, given)
    return found is None or found.value is not False


def _bound(file: PythonFile, call: cst.Call) -> cst.BaseExpression | None:
    """What the partial that is called says of `use_reentrant`."""
    name = dotted(call.func) or ""
    if file.full_name(call.func) in WRAPPERS or not name:
        return None
    made = given_to(file.function_around(call) or file.module, name) or given_to(file.module, name)
    said = [arg for each in made if isinstance(each, cst.Call) and (arg := keyword(each, "use_reentrant")) is not None]
    return said[0].value if said else None


def carry_gradients(project: Project, file: PythonFile, call: cst.Call, arguments: list[cst.Arg]) -> None:
    """Raises `UsageError` where the inputs may carry no gradient: then nothing of the function is trained, until it is called itself."""
    here = file.location(call)
    if any(isinstance(arg.value, (cst.Tuple, cst.List, cst.Dict)) or arg.star for arg in arguments):
        raise refuse(f"{here}: use_reentrant gives no gradient to what a list or splat holds, and the call by itself would")
    trained_nowhere(project)
    if not any(_carries(project, file, arg.value, 0) for arg in arguments):
        raise refuse(f"{here}: whether the inputs carry a gradient is not known, and without one use_reentrant trains nothing of it")


def trained_nowhere(project: Project) -> None:
    """Raises `UsageError` where the program freezes parts, which may be those in front of what is computed again."""
    for word in FREEZES:
        for where in project.parsed(word):
            raise refuse(f"{where.path}: `{word}`: behind what is frozen, what is computed again may get no gradient")


def whole(project: Project) -> None:
    """Raises `UsageError` where a library's switch for its own networks may be about such layers, or about frozen ones."""
    for file in project.parsed():
        counts_nothing(project, file, None)
        for call in file.calls:
            name = callees.called_name(call)
            named = literal(call.args[0].value) if name == "create_model" and call.args else None
            if name == "create_model" and not (isinstance(named, str) and named.split("/")[-1].startswith(PLAIN_FAMILIES)):
                raise refuse(f"{file.location(call)}: whether this network has running statistics is not known")
    if not any(True for _ in project.parsed("use_reentrant")):
        trained_nowhere(project)


def _counted(file: PythonFile, node: cst.CSTNode) -> str | None:
    """What a pass changes there."""
    if isinstance(node, cst.Name):
        return "keeps running statistics" if node.value in COUNTS else None
    if isinstance(node, cst.AugAssign):
        forward = file.function_around(node)
        own = (dotted(unsubscripted(node.target)) or "").startswith("self.")
        return "counts" if own and forward is not None and forward.name.value == "forward" else None
    full = file.full_name(node.func) or ""  # type: ignore[attr-defined]
    if full.startswith("torchvision.models.") and not full.split(".")[-1].startswith(PLAIN_FAMILIES):
        return "may keep running statistics"
    function = file.function_around(node)
    held = node.func.value if isinstance(node.func, cst.Attribute) else None  # type: ignore[attr-defined]
    own = held is not None and (dotted(unsubscripted(held)) or "").startswith("self.")
    if own and function is not None and function.name.value == "forward" and changes.writes(node.func.attr.value):  # type: ignore[attr-defined]
        return "changes what the module holds"
    return None


def _parts(project: Project, file: PythonFile, target: cst.BaseExpression) -> list[Part] | None:
    """What `target` is made of: classes and functions of the program that its names stand for, however deep; None where it is not known."""
    todo, found = [(file, target)], list[Part]()
    known = False
    while todo:
        where, part = todo.pop()
        if any(part is each for _, each in found):
            continue
        found.append((where, part))
        for node in descendants(part, (cst.Name, cst.Attribute)):
            meant = list(_meant(project, where, node))
            todo += meant
            known = known or bool(meant) or (where.full_name(node) or "").startswith("torch.nn.")  # type: ignore[arg-type]
            if part is target and not meant and isinstance(node, cst.Name) and _from_outside(where, node):
                return None
    return found if known or isinstance(target, cst.Lambda) else None


def _from_outside(file: PythonFile, name: cst.Name) -> bool:
    """Whether a name is a parameter of the function around it, other than the object itself."""
    function = file.function_around(name)
    params = [each.name.value for each in descendants(function.params, cst.Param)] if function is not None else []  # type: ignore[attr-defined]
    return name.value in params and name.value not in ("self", "cls")


def _meant(project: Project, file: PythonFile, node: cst.CSTNode) -> Iterator[Part]:
    """What a name stands for: a class or function of the program, or what a field, a variable or a loop's target was given."""
    name = dotted(node) or ""
    tail = name.split(".")[-1]
    if name.startswith("self."):
        owner = file.class_around(node)
        given = given_to(owner, name) if owner is not None else []
        yield from ((file, each) for each in given)
        methods = methods_of(owner) if owner is not None and not given else []
        yield from ((file, each) for each in methods if each.name.value == tail)
        return
    for where in project.parsed(tail) if tail else ():
        for each in where.nodes:
            if (isinstance(each, cst.ClassDef) and each.name.value == tail) or (
                isinstance(each, cst.FunctionDef) and each.name.value == tail and where.class_of(each) is None
            ):
                yield where, each
    if isinstance(node, cst.Name):
        scope = file.function_around(node) or file.module
        yield from ((file, each) for each in given_to(scope, node.value))
        for loop in descendants(scope, (cst.For, cst.CompFor)):
            if any(each.value == node.value for each in descendants(loop.target, cst.Name)):  # type: ignore[attr-defined]
                yield file, loop.iter  # type: ignore[attr-defined]


# --- gradients of the inputs


def _carries(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
    """Whether the source shows that a value carries a gradient: it comes out of something that is trained."""
    if depth > 2 * DEEPEST:
        return False
    if isinstance(node, cst.BinaryOperation):
        return _carries(project, file, node.left, depth + 1) or _carries(project, file, node.right, depth + 1)
    if isinstance(node, cst.Subscript):
        return _carries(project, file, node.value, depth + 1)
    if isinstance(node, cst.Attribute):
        return dotted(node.value) == "self" and _is_trained(project, file, node)
    if isinstance(node, cst.Name):
        return _variable(project, file, node, depth)
    if not isinstance(node, cst.Call) or callees.called_name(node) in ("detach", "checkpoint"):
        return False
    func = node.func
    asks = keyword(node, "requires_grad")
    if (asks is not None and literal(asks.value) is True) or callees.called_name(node) == "requires_grad_":
        return True
    if (file.full_name(func) or "").startswith("torch.") and not (file.full_name(func) or "").startswith("torch.nn.functional.embedding"):
        return any(_carries(project, file, arg.value, depth + 1) for arg in node.args)
    if _is_trained(project, file, unsubscripted(func)):
        return True
    inner = func.value if isinstance(func, cst.Attribute) and dotted(func.value) != "self" else None
    return inner is not None and _carries(project, file, inner, depth + 1)


def _is_trained(project: Project, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a name stands for a layer with weights, or for weights."""
    for where, part in _meant(project, file, node):
        for call in descendants(part, cst.Call):
            full = where.full_name(call.func) or ""  # type: ignore[attr-defined]
            inside = list(_meant(project, where, call.func)) if not full.startswith("torch.") else []  # type: ignore[attr-defined]
            layers = [each for other, piece in inside for each in descendants(piece, cst.Call) if _has_weights(other, each)]
            if _has_weights(where, call) or layers:
                return True
    return False


def _has_weights(file: PythonFile, call: cst.CSTNode) -> bool:
    full = file.full_name(call.func) or ""  # type: ignore[attr-defined]
    return full.startswith("torch.nn.") and full.split(".")[-1].startswith(TRAINED)


def _variable(project: Project, file: PythonFile, name: cst.Name, depth: int) -> bool:
    function = file.function_around(name)
    scope = function.body if function is not None else file.module
    asked = (call for call in descendants(scope, cst.Call) if dotted(call.func) == f"{name.value}.requires_grad_")  # type: ignore[attr-defined]
    if any(not call.args for call in asked):  # type: ignore[attr-defined]
        return True
    ahead = [
        each
        for each in descendants(scope, cst.Assign)
        if file.span(each)[1] <= file.span(name)[0] and any(dotted(target) == name.value for target in targets_of(each))
    ]
    if ahead:
        return _carries(project, file, ahead[-1].value, depth + 1)  # type: ignore[attr-defined]
    param = parameter(function, name.value)
    owner = file.class_of(function) if function is not None else None
    if param is None or owner is None or function is None or function.name.value != "forward":
        return False
    handed = []
    for where, call in _runs(project, owner.name.value):
        handed.append((where, passed(where, call, file, function, param)))
    return bool(handed) and all(each is not None and _carries(project, where, each, depth + 2) for where, each in handed)


def _runs(project: Project, owner: str) -> Iterator[tuple[PythonFile, cst.Call]]:
    """Calls of what is made of the class: of fields and variables that are given it."""
    for file in project.parsed(owner):
        bound = {name for each in descendants(file.module, cst.AssignTarget) for name in map(dotted, elements_of(each.target)) if name}  # type: ignore[attr-defined]
        names = {
            name
            for name in bound
            for value in given_to(file.module, name)
            if any(callees.called_name(call) == owner for call in descendants(value, cst.Call))  # type: ignore[arg-type]
        }
        yield from ((file, call) for call in file.calls if dotted(unsubscripted(call.func)) in names)
