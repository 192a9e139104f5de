"""Whether the factor of attention's scores is a number, as the fused kernel takes it, or a tensor."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

SHAPES = {"reshape", "unflatten", "view"}


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
