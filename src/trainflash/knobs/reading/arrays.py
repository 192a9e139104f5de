"""Whether an expression is a tensor or an array, as far as the source tells."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, passed
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, parameter

DEEPEST = 4  # own: names that are followed; annotations and the callers of helpers lie one or two away
LIBRARIES = ("torch", "numpy")
OTHERWISE = {
    "load",
    "device",
    "Generator",
    "manual_seed",
    "is_tensor",
    "numel",
    "unbind",
    "split",
    "chunk",
    "save",
    "compile",
    "default_rng",
    "meshgrid",
    "nonzero",
    "random_split",
    "savez",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sort",
    "topk",
    "where",
}  # fmt: skip - make no array, or several
METHODS = {
    "abs", "amax", "amin", "argmax", "argmin", "argsort", "astype", "bool", "ceil", "clamp", "clone", "contiguous", "cpu", "cumsum", "cuda",
    "detach", "diagonal", "double", "exp", "flatten", "float", "floor", "gather", "half", "int", "log", "log_softmax", "long",
    "masked_fill", "mean", "norm", "numpy", "permute", "ravel", "relu", "reshape", "round", "sigmoid", "softmax", "sqrt", "squeeze", "std",
    "sum", "tanh", "to", "transpose", "unsqueeze", "view", "where",
}  # fmt: skip
PAIRS = {"max", "min", "sort", "topk"}  # over a dimension they give two tensors
OF_TENSORS = {"cuda", "detach", "device", "new_empty", "new_ones", "new_zeros", "permute", "requires_grad", "unflatten", "unsqueeze"}
FIELDS = {"data", "grad", "values", "indices", "T", "mT"}


def is_array(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether `node` is known to be a tensor of torch or an array of NumPy; False where the source does not tell."""
    if depth > DEEPEST:
        return False
    if isinstance(node, cst.Call):
        full = file.full_name(node.func) or ""
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        if full.split(".")[0] in LIBRARIES:
            return full.split(".")[-1] not in OTHERWISE and full.split(".")[-1][:1].islower()
        return method in METHODS or (method in PAIRS and not node.args)
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        sides = [node.left, node.right] if isinstance(node, cst.BinaryOperation) else [node.left, node.comparisons[0].comparator]
        return any(is_array(project, file, side, depth + 1) for side in sides)
    if isinstance(node, cst.UnaryOperation):
        return not isinstance(node.operator, cst.Not) and is_array(project, file, node.expression, depth + 1)
    if isinstance(node, cst.Subscript):
        return _cut(node) or is_array(project, file, node.value, depth)
    if isinstance(node, cst.Name):
        return _name(project, file, node, depth)
    if isinstance(node, cst.Attribute):
        return _attribute(project, file, node, depth)
    return False


def _cut(node: cst.Subscript) -> bool:
    """Whether several indices are taken at once, one of them a range: no dictionary takes that, a table does by `x.iloc` only."""
    ranged = any(isinstance(each.slice, cst.Slice) for each in node.slice)
    table = isinstance(node.value, cst.Attribute) and node.value.attr.value in ("iloc", "loc")
    return len(node.slice) > 1 and ranged and not table


def declared_array(project: Project, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` is an array of NumPy by an annotation: of a parameter, of what a function of the project gives, or of a field."""
    if isinstance(node, cst.Call):
        found = [each for _, each in project.functions((dotted(node.func) or "").split(".")[-1])]
        return bool(found) and all(each.returns is not None and _says_array(each.returns) for each in found)
    if isinstance(node, cst.Attribute):
        fields = [
            each
            for where in project.parsed(node.attr.value)
            for each in where.nodes
            if isinstance(each, cst.AnnAssign) and dotted(each.target) == node.attr.value
        ]
        return bool(fields) and all(_says_array(each.annotation) for each in fields)
    scope = file.scope(node) if isinstance(node, cst.Name) else None
    bound = [getattr(each, "node", None) for each in (scope[node.value] if scope is not None else ())]  # type: ignore[attr-defined]
    return bool(bound) and all(isinstance(each, cst.Param) and each.annotation and _says_array(each.annotation) for each in bound)


def _says_array(annotation: cst.Annotation) -> bool:
    inner = annotation.annotation
    inner = inner.value if isinstance(inner, cst.Subscript) else inner
    return (dotted(inner) or "").split(".")[-1] in ("ndarray", "NDArray")


def _name(project: Project, file: PythonFile, node: cst.Name, depth: int) -> bool:
    scope = file.scope(node)
    found = [getattr(each, "node", None) for each in (scope[node.value] if scope is not None else ())]
    return bool(found) and all(each is not None and _bound(project, file, each, depth) for each in found)


def _bound(project: Project, file: PythonFile, target: cst.CSTNode, depth: int) -> bool:
    """Whether what binds a name at `target` gives it an array."""
    up = file.parent(target)
    param = target if isinstance(target, cst.Param) else up
    if isinstance(param, cst.Param):
        return _parameter(project, file, param, depth)
    if isinstance(up, cst.AssignTarget):
        return is_array(project, file, file.parent(up).value, depth + 1)  # type: ignore[union-attr]
    if isinstance(up, cst.AnnAssign):
        return _declared(file, up.annotation)
    around = file.parent(up) if isinstance(up, cst.Element) else None
    assign = file.parent(file.parent(around)) if around is not None and isinstance(file.parent(around), cst.AssignTarget) else None
    if isinstance(assign, cst.Assign) and isinstance(assign.value, (cst.Tuple, cst.List)):
        place = [element.value for element in around.elements].index(target)  # type: ignore[union-attr]
        same = len(assign.value.elements) == len(around.elements)  # type: ignore[union-attr]
        return same and is_array(project, file, assign.value.elements[place].value, depth + 1)
    call = assign.value if isinstance(assign, cst.Assign) else None
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value in PAIRS


def _parameter(project: Project, file: PythonFile, param: cst.Param, depth: int) -> bool:
    if param.default is not None and dotted(param.default) == "None":
        return False
    if param.annotation is not None:
        return _declared(file, param.annotation)
    function = next((up for up in file.ancestors(param) if isinstance(up, (cst.FunctionDef, cst.Lambda))), None)
    if not isinstance(function, cst.FunctionDef) or param.star:
        return False
    given = [(where, passed(where, call, file, function, param)) for where, call in callers.sites(project, file, function)]
    return bool(given) and all(each is not None and is_array(project, where, each, depth + 1) for where, each in given)


def _declared(file: PythonFile, annotation: cst.Annotation) -> bool:
    name = dotted(annotation.annotation) or ""
    return name.split(".")[-1] in ("Tensor", "ndarray", "LongTensor", "FloatTensor")


def _attribute(project: Project, file: PythonFile, node: cst.Attribute, depth: int) -> bool:
    if node.attr.value in FIELDS and is_array(project, file, node.value, depth + 1):
        return True
    owner = file.class_around(node)
    if owner is not None and dotted(node.value) == "self":
        stored = [(file, value) for value in given_to(owner, dotted(node) or "")]
    else:
        stored = _of_any_object(project, node.attr.value)
    return bool(stored) and all(is_array(project, where, value, depth + 1) for where, value in stored)


def _of_any_object(project: Project, name: str) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What the program gives to attributes of that name, whichever object they are of."""
    found: list[tuple[PythonFile, cst.BaseExpression]] = []
    for where in project.parsed(name):
        for node in where.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == name and (full := dotted(node)) is not None:
                line = where.statement(node)
                found += [(where, value) for value in (given_to(line, full) if line is not None else ()) if (where, value) not in found]
    return found


# Torch's own tensors --------------------------------------------------------------------------------------------------------------


def may_be_other(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int = DEEPEST) -> bool:
    """Whether `node` may be no dense tensor of torch: an array of NumPy, an image of a library, a sparse tensor.

    What nobody in the program gives, such as the input of a network, counts as a tensor.
    """
    if depth < 0:
        return True
    if isinstance(node, cst.Name):
        return _name_may(project, file, node, depth - 1)
    if isinstance(node, cst.Attribute):
        name = dotted(node) or ""
        owner = file.class_around(node) if name.startswith("self.") else None
        return owner is not None and any(may_be_other(project, file, each, depth - 1) for each in given_to(owner, name))
    if isinstance(node, cst.Subscript):
        return may_be_other(project, file, node.value, depth)
    if isinstance(node, cst.BinaryOperation):
        return may_be_other(project, file, node.left, depth) or may_be_other(project, file, node.right, depth)
    return isinstance(node, cst.Call) and _call_may(project, file, node, depth - 1)


def _call_may(project: Project, file: PythonFile, call: cst.Call, depth: int) -> bool:
    full, method = file.full_name(call.func) or "", callees.method_name(call)
    if full.startswith("torch."):
        return "sparse" in full
    if method == "numpy" or method.startswith("to_sparse") or callees.of_library(project, file, call):
        return True
    meant = list(callees.meant(project, file, call))
    if meant:
        returned = [(where, each.value) for where, function in meant for each in descendants(function.body, cst.Return)]  # type: ignore[attr-defined]
        return any(value is not None and may_be_other(project, where, value, depth) for where, value in returned)
    if full in ("enumerate", "zip", "iter", "next", "list", "tuple", "reversed"):
        return any(may_be_other(project, file, arg.value, depth) for arg in call.args)
    made = isinstance(call.func, cst.Attribute) and dotted(call.func.value) not in ("self", "cls")  # `self.net(x)` gives tensors
    return made and may_be_other(project, file, call.func.value, depth)  # type: ignore[union-attr]


def _name_may(project: Project, file: PythonFile, node: cst.Name, depth: int) -> bool:
    """By what is asked of it that only a tensor has, by its annotation, by what it is given, or by what callers hand on."""
    function = file.function_around(node)
    around = function.body if function is not None else file.module
    asked = (each.attr.value for each in descendants(around, cst.Attribute) if dotted(each.value) == node.value)  # type: ignore[attr-defined]
    if any(each in OF_TENSORS for each in asked):
        return False
    loops = [each.iter for each in descendants(around, cst.For) if any(dotted(x) == node.value for x in descendants(each.target, cst.Name))]  # type: ignore[attr-defined]
    values = [*given_to(around, node.value), *loops]
    if any(may_be_other(project, file, each, depth) for each in values if not _again(each, node.value)):
        return True
    param = parameter(function, node.value)
    if param is None or function is None or function.name.value == "forward":
        return False
    if param.annotation is not None:
        return (dotted(param.annotation.annotation) or "").split(".")[-1] not in ("Tensor", "LongTensor", "FloatTensor")
    given = ((where, passed(where, call, file, function, param)) for where, call in callers.sites(project, file, function))
    return any(each is not None and may_be_other(project, where, each, depth) for where, each in given)


def _again(value: cst.BaseExpression, name: str) -> bool:
    """Whether a variable is given what is made of itself, as in `x = x.float()`."""
    return any(each.value == name for each in descendants(value, cst.Name))  # type: ignore[attr-defined]
