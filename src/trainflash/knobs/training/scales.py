"""Whether the factor of attention's scores is a number, as the fused kernel takes it, or a tensor, which may do for the queries as well."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import given_to, literal
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value

SHAPES = {"reshape", "unflatten", "view"}
ELEMENTWISE = ("exp", "clamp", "clamp_max", "clamp_min", "abs", "log", "sigmoid", "softplus", "sqrt", "square", "float")
SIZED = ("ones", "zeros", "rand", "randn", "empty", "full")
REGISTERED = "self.register_buffer"
DEEPEST = 8  # own: a factor goes through two or three names, and as many calls


def tensor(file: PythonFile, node: cst.BaseExpression, depth: int) -> cst.CSTNode | None:
    """What shows that a scale is a tensor: made by torch, or handed to the function without a word about its type."""
    for call in descendants(node, cst.Call):
        full = file.full_name(call.func) or ""
        if full.startswith("torch.") and not full.startswith("torch.finfo"):
            return call
    if depth > 2:
        return None
    for part in descendants(node, (cst.Name, cst.Attribute)):
        kind = cst.ClassDef if isinstance(part, cst.Attribute) else cst.FunctionDef
        owner = next((up for up in file.ancestors(part) if isinstance(up, kind)), None)
        name = dotted(part)
        if isinstance(part, cst.Name) and isinstance(file.parent(part), (cst.Attribute, cst.Call)):
            continue
        if isinstance(part, cst.Name) and owner is not None and _untyped(owner, part.value):
            return part
        for assign in descendants(owner, cst.Assign) if owner is not None and name else ():
            if any(dotted(target.target) == name for target in assign.targets) and not file.inside(node, assign):
                found = tensor(file, assign.value, depth + 1) if not isinstance(part, cst.Attribute) else _made(file, assign.value)
                if found is not None:
                    return found
    return None


def _made(file: PythonFile, value: cst.BaseExpression) -> cst.CSTNode | None:
    return next((call for call in descendants(value, cst.Call) if (file.full_name(call.func) or "").startswith("torch.")), None)


def _untyped(function: cst.FunctionDef, name: str) -> bool:
    """Whether `name` is a parameter that may be a tensor: neither declared a number nor named as a factor is."""
    for param in (*function.params.params, *function.params.kwonly_params):
        if param.name.value == name:
            written = param.annotation.annotation if param.annotation is not None else None
            return not (
                dotted(written) in ("float", "int")
                or isinstance(param.default, (cst.Integer, cst.Float))
                or name in ("scale", "scaling", "sm_scale")
                or _is_size(function, name)
            )
    return False


def _is_size(function: cst.FunctionDef, name: str) -> bool:
    """Whether the function makes shapes of `name`, as numbers alone can be used."""
    calls = [
        call for call in descendants(function.body, cst.Call) if isinstance(call.func, cst.Attribute) and call.func.attr.value in SHAPES
    ]
    return any(dotted(arg.value) == name for call in calls for arg in call.args)


def one_for_each_head(file: PythonFile, node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether a tensor is one number, or one for each head, `(heads, 1, 1)`: it scales queries as it does their scores."""
    if depth > DEEPEST:
        return False
    if isinstance(node, cst.Name):
        function = file.function_around(node)
        given = given_to(function, node.value) if function is not None else []
        if function is None or _handed_or_changed(function, node.value):
            return False
        return len(given) == 1 and one_for_each_head(file, given[0], depth + 1)
    if isinstance(node, cst.Attribute):
        owner = file.class_around(node)
        made = _made_in(owner, node) if owner is not None else []
        if touched_elsewhere(file, node.attr.value, len(made)):
            return False
        return len(made) == 1 and one_for_each_head(file, made[0], depth + 1)
    if isinstance(node, cst.BinaryOperation):
        sides = [side for side in (node.left, node.right) if not isinstance(literal(side), (int, float))]
        return len(sides) == 1 and one_for_each_head(file, sides[0], depth + 1)
    return isinstance(node, cst.Call) and _call_for_each_head(file, node, depth)


def _handed_or_changed(function: cst.FunctionDef, name: str) -> bool:
    changed = any(dotted(each.target) == name for each in descendants(function.body, cst.AugAssign))  # type: ignore[attr-defined]
    return changed or any(each.name.value == name for each in descendants(function.params, cst.Param))  # type: ignore[attr-defined]


def touched_elsewhere(file: PythonFile, name: str, made: int) -> bool:
    """Whether the file gives the attribute `name` of any object more than the `made` values, or changes in place what it holds."""
    given = 0
    for node in file.nodes:
        if isinstance(node, cst.Call) and dotted(node.func) == REGISTERED and node.args and string_value(node.args[0].value) == name:
            given += 1
        if not isinstance(node, cst.Attribute) or node.attr.value != name:
            continue
        up = file.parent(node)
        while isinstance(up, (cst.Subscript, cst.Element)):
            node, up = up, file.parent(up)  # type: ignore[assignment]
        if isinstance(up, (cst.AugAssign, cst.Del)) and getattr(up, "target", None) is node:
            return True
        if isinstance(up, (cst.AssignTarget, cst.AnnAssign)) and getattr(up, "target", None) is node:
            given += 1 if isinstance(node, cst.Attribute) else made + 1
        if isinstance(up, cst.Attribute) and up.value is node and up.attr.value.endswith("_") and not up.attr.value.startswith("_"):
            return True
    return given > made


def _made_in(owner: cst.ClassDef, node: cst.Attribute) -> list[cst.BaseExpression]:
    """What the class gives to `self.name`, by an assignment or as a buffer."""
    name = dotted(node) or ""
    calls = [call for call in descendants(owner, cst.Call) if dotted(call.func) == REGISTERED and len(call.args) > 1]  # type: ignore[attr-defined]
    return given_to(owner, name) + [call.args[1].value for call in calls if f"self.{string_value(call.args[0].value)}" == name]  # type: ignore[attr-defined]


def _call_for_each_head(file: PythonFile, call: cst.Call, depth: int) -> bool:
    full = file.full_name(call.func) or ""
    first = call.args[0].value if call.args and not call.args[0].star else None
    if full in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and first is not None:
        return one_for_each_head(file, first, depth + 1)
    last = full.split(".")[-1]
    if full.startswith("torch.") and last == "tensor":
        return first is not None and isinstance(literal(first), (int, float))
    if full.startswith("torch.") and last in SIZED:
        sizes = [arg.value for arg in call.args if arg.keyword is None]
        sizes = sizes[:1] if last == "full" else sizes
        if not sizes or any(arg.star or (arg.keyword is not None and arg.keyword.value == "size") for arg in call.args):
            return False
        if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
            sizes = [each.value for each in sizes[0].elements]
        elif len(sizes) == 1 and last == "full":
            return False  # a size that is held elsewhere
        return all(literal(each) == 1 for each in sizes[-2:]) and all(not isinstance(each, cst.StarredElement) for each in sizes)
    if full.startswith("torch.") and last in ELEMENTWISE:
        return first is not None and one_for_each_head(file, first, depth + 1)
    method = isinstance(call.func, cst.Attribute) and call.func.attr.value in ELEMENTWISE
    return method and one_for_each_head(file, call.func.value, depth + 1)  # type: ignore[attr-defined]
