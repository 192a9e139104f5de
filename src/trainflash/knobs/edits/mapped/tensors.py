"""Whether the source shows that an expression is a tensor: `torch.vmap` takes a list of tensors, too, and then means something else."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, passed, place_in, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value

LISTS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.ListComp, cst.GeneratorExp, cst.DictComp, cst.SetComp)
SEVERAL = {"split", "chunk", "tensor_split", "unbind", "meshgrid", "nonzero", "topk", "sort", "broadcast_tensors", "unique", "where", "max"}
SEVERAL |= {"min", "aminmax", "svd", "qr", "eig", "eigh", "autograd", "grad", "load", "vmap", "compile", "Generator", "device", "Size"}
SAME = """
abs argmax bfloat16 clamp clone contiguous cos cumsum detach double exp expand expand_as flatten flip float gather half
index_select log log_softmax long masked_fill matmul mean mm bmm movedim mul narrow neg norm permute pow prod relu repeat
requires_grad_ reshape roll round select sigmoid sin softmax sqrt square squeeze std sub sum swapaxes t tanh to transpose tril
triu type_as unflatten unfold unsqueeze view view_as new_zeros new_ones new_empty new_full new_tensor
"""
GIVE = frozenset(SAME.split())  # methods of a tensor that give one
GIVE_MORE = {"RNN", "LSTM", "GRU", "LSTMCell", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss", "ModuleList", "ModuleDict", "Module"}
OWN = GIVE - {"to", "float", "half", "double"} | {"shape", "size", "dim", "ndim", "numel", "dtype", "grad", "requires_grad", "T", "mT"}
DEEPEST = 9  # own: names, calls and parameters between an expression and what shows it to be a tensor


def tensor(project: Project, file: PythonFile, node: cst.BaseExpression) -> None:
    """Raises `UsageError` where the source does not show that `node` is a tensor."""
    if not shown(project, file, node):
        raise refuse(f"{file.location(node)}: the source does not show that `{short(file.text(node))}` is a tensor, and no list of them")


def shown(project: Project, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether the source shows that `node` is a tensor."""
    return not isinstance(node, LISTS) and _shown(project, file, node, DEEPEST)


def _shown(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
    if not depth:
        return False
    if isinstance(node, cst.Call):
        return _made(project, file, node, depth - 1)
    if isinstance(node, cst.BinaryOperation):
        product = isinstance(node.operator, cst.MatrixMultiply)
        return product or any(_shown(project, file, side, depth - 1) for side in (node.left, node.right))
    if isinstance(node, cst.UnaryOperation):
        return _shown(project, file, node.expression, depth - 1)
    if isinstance(node, cst.Subscript):
        return _shown(project, file, node.value, depth - 1)
    if isinstance(node, cst.Attribute) and node.attr.value in ("T", "mT", "data", "grad"):
        return True
    return dotted(node) is not None and _held(project, file, node, depth - 1)


def _made(project: Project, file: PythonFile, call: cst.Call, depth: int) -> bool:
    full = file.full_name(call.func) or ""
    name = callees.called_name(call)
    if full.startswith("torch."):
        return (name not in SEVERAL and not full.startswith(("torch.nn.", "torch.utils.", "torch.optim."))) or full.startswith(
            ("torch.nn.functional.", "torch.nn.Parameter")
        )
    if isinstance(call.func, cst.Attribute) and name in GIVE:
        return True
    if _layer(file, call.func):
        return True
    own = list(callees.meant(project, file, call))
    if len(own) != 1 or own[0][1].name.value in callees.CONSTRUCTORS:
        return False
    where, function = own[0]
    returned = [each.value for each in descendants(function.body, cst.Return) if each.value is not None]  # type: ignore[attr-defined]
    return bool(returned) and all(_shown(project, where, each, depth) for each in returned)


def _layer(file: PythonFile, called: cst.BaseExpression) -> bool:
    """Whether a network of torch's own layers is called that gives one tensor."""
    name = dotted(called)
    owner = file.class_around(called) if (name or "").startswith("self.") else file.function_around(called)
    made = [*given_to(owner or file.module, name)] if name is not None else []
    return bool(made) and all(_gives_one(file, each) for each in made)


def layer_of_torch(file: PythonFile, made: cst.BaseExpression) -> str:
    """`Linear` of `nn.Linear(…)`; empty for anything but a layer of torch's own."""
    module, _, kind = (file.full_name(made.func) or "").rpartition(".") if isinstance(made, cst.Call) else ("", "", "")
    return kind if module == "torch.nn" else ""


def _gives_one(file: PythonFile, made: cst.BaseExpression) -> bool:
    kind = layer_of_torch(file, made)
    if not kind or kind in GIVE_MORE:
        return False
    return kind != "Sequential" or (bool(made.args) and not made.args[-1].star and _gives_one(file, made.args[-1].value))  # type: ignore[attr-defined]


def _held(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
    """A variable or an attribute: by its uses as a tensor in the function, by what it is given, or by what callers pass."""
    name = dotted(node) or ""
    function = _owner(file, node, name)
    owner: cst.CSTNode = function or file.module
    if any(_used_so(file, each) for each in _same(owner, name)):
        return True
    if name.startswith("self."):
        return _of_object(project, file, node, name, depth)
    given = [value for value in given_to(owner, name) if not file.inside(node, value)]
    param = next((each for each in descendants(owner.params, cst.Param) if each.name.value == name), None) if function is not None else None  # type: ignore[attr-defined]
    if param is not None:
        return not given and _parameter(project, file, function, param, depth)  # type: ignore[arg-type]
    return all(_shown(project, file, value, depth) for value in given) if given else _unpacked(project, file, owner, name, depth)


def _unpacked(project: Project, file: PythonFile, owner: cst.CSTNode, name: str, depth: int) -> bool:
    """Whether `name` is given one of several results of a function alone, each time a tensor."""
    found = [
        (place, node.value)  # type: ignore[attr-defined]
        for node in descendants(owner, cst.Assign)
        for target in node.targets  # type: ignore[attr-defined]
        if isinstance(target.target, cst.Tuple) and (place := place_in(target.target, name)) is not None
    ]
    results = [(place, *each) for place, call in found if isinstance(call, cst.Call) for each in callees.meant(project, file, call)]
    return len(found) == len(results) == 1 and all(
        isinstance(each.value, cst.Tuple)  # type: ignore[attr-defined]
        and place < len(each.value.elements)  # type: ignore[attr-defined]
        and _shown(project, where, each.value.elements[place].value, depth)  # type: ignore[attr-defined]
        for place, where, function in results
        for each in descendants(function.body, cst.Return)
    )


def _owner(file: PythonFile, node: cst.BaseExpression, name: str) -> cst.FunctionDef | None:
    """The innermost function around `node` that gives `name` a value or takes it; the innermost of all where none does."""
    around = [up for up in file.ancestors(node) if isinstance(up, cst.FunctionDef)]
    own = (
        each
        for each in around
        if given_to(each, name) or any(param.name.value == name for param in descendants(each.params, cst.Param))  # type: ignore[attr-defined]
    )
    return next(own, around[0] if around else None)


def _same(owner: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    for node in descendants(owner, (cst.Name, cst.Attribute)):
        if dotted(node) == name:
            yield node  # type: ignore[misc]


def _used_so(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` stands where only a tensor (or an array) may: `x.shape`, `x[:, i]`, `F.relu(x)`, `x @ y`."""
    up = file.parent(node)
    if isinstance(up, cst.Attribute) and up.value is node:
        return up.attr.value in OWN
    if isinstance(up, cst.Subscript) and up.value is node:
        return len(up.slice) > 1
    if isinstance(up, cst.BinaryOperation):
        return isinstance(up.operator, cst.MatrixMultiply)
    call = file.parent(up) if isinstance(up, cst.Arg) else None
    return isinstance(call, cst.Call) and call.args[0] is up and (file.full_name(call.func) or "").startswith("torch.nn.functional.")


def _of_object(project: Project, file: PythonFile, node: cst.BaseExpression, name: str, depth: int) -> bool:
    owner = file.class_around(node)
    if owner is None:
        return False
    attribute = name.removeprefix("self.")
    layer = any((file.full_name(base.value) or "").startswith("torch.nn.") for base in owner.bases)
    for call in descendants(owner, cst.Call):
        told = string_value(call.args[0].value) if call.args else None  # type: ignore[attr-defined]
        if told == attribute and callees.called_name(call) in ("register_buffer", "register_parameter"):  # type: ignore[arg-type]
            return True
    given = given_to(owner, name)
    if not given:
        return (layer and attribute in ("weight", "bias")) or _unpacked(project, file, owner, name, depth)
    return all(_shown(project, file, value, depth) for value in given)


def _parameter(project: Project, file: PythonFile, function: cst.FunctionDef, param: cst.Param, depth: int) -> bool:
    if param.annotation is not None:
        return (dotted(param.annotation.annotation) or "").split(".")[-1] == "Tensor"
    found = []
    for where, call in (*callers.sites(project, file, function), *callers.of_objects(project, file, function)):
        try:
            given = passed(where, call, file, function, param)
        except UsageError:
            return False
        given = given or param.default
        found.append(given is not None and _shown(project, where, given, depth))
    if not found and param.default is not None:
        return _shown(project, file, param.default, depth)
    return bool(found) and all(found)
