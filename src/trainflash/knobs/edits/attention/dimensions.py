"""Attention of three dimensions, for which torch has no fused kernel: one more in front of all that it is given, and taken away behind."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.attention.chain import stores, wide_mask
from trainflash.knobs.edits.attention.place import attention_place
from trainflash.knobs.edits.which_call import only_call
from trainflash.knobs.kinds import FourDimensions
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, operand, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, has_splat, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

FUNCTION = "scaled_dot_product_attention"
OF_TENSORS = (
    "bool",
    "to",
    "float",
    "triu",
    "tril",
    "unsqueeze",
    "expand",
    "view",
    "reshape",
    "masked_fill",
    "repeat_interleave",
    "type_as",
)
GIVEN = ("query", "key", "value", "attn_mask")  # in order of place


def four_dimensions(edit: FourDimensions, scene: Scene) -> tuple[Target, ...]:
    """The one call at the line that the run saw. Raises `UsageError` where its tensors cannot be told from its other arguments."""
    file, place = attention_place(scene, "attention is not asked for in this project's own source")
    call = only_call(file, place, lambda call: (file.full_name(call.func) or "").endswith(FUNCTION), f"of {FUNCTION}")
    here, end = file.location(call), file.span(call)[1]
    if has_splat(call, "*") or has_splat(call, "**"):
        raise refuse(f"{here}: what `{short(file.text(call))}` is given cannot be told")
    values = [arg.value for at, name in enumerate(GIVEN) if (arg := positional(call, at) or keyword(call, name)) is not None]
    tensors = [value for value in values if not (isinstance(value, cst.Name) and value.value == "None")]
    if len(tensors) < 3:
        raise refuse(f"{here}: `{short(file.text(call))}` is not given queries, keys and values")
    if any(isinstance(value, cst.Subscript) and file.text(value).endswith("[None]") for value in tensors):
        raise refuse(f"{here}: a dimension is added already")
    query, key = (file.outer_text(each) for each in values[:2])
    raised = [f"{operand(file, each)}[None]" for each in tensors[:3]]
    raised += [_wide(scene.project, file, each, wide_mask(query, key, file.outer_text(each))) for each in tensors[3:]]
    splices = tuple(Splice(file.path, *file.outer_span(value), text) for value, text in zip(tensors, raised, strict=True))
    return (Target(here, None, lambda value: (*splices, Splice(file.path, end, end, "[0]")), f"attention at {here}", "four dimensions"),)


def _wide(project: Project, file: PythonFile, mask: cst.BaseExpression, wide: str) -> str:
    """A mask with four dimensions; where it may be None, only if it is none."""
    if _is_tensor(project, file, mask):
        return wide
    if isinstance(mask, (cst.Name, cst.Attribute, cst.Subscript)) and not any(True for _ in descendants(mask, cst.Call)):
        return f"None if {file.text(mask)} is None else {wide}"
    raise refuse(f"{file.location(mask)}: the mask `{short(file.text(mask))}` may be None")


def _is_tensor(project: Project, file: PythonFile, mask: cst.BaseExpression) -> bool:
    """Whether a mask is known not to be None: made by torch or an operator, or a name that is given nothing else."""
    if isinstance(mask, cst.Name):
        function = file.function_around(mask)
        given = given_to(function, mask.value) if function is not None else []
        params = descendants(function.params, cst.Param) if function is not None else ()
        if any(param.name.value == mask.value for param in params) or _given_otherwise(file, function, mask.value, len(given)):  # type: ignore[attr-defined]
            return False
        return bool(given) and all(not isinstance(each, cst.Name) and _is_tensor(project, file, each) for each in given)
    if isinstance(mask, cst.Call):
        method = mask.func.attr.value if isinstance(mask.func, cst.Attribute) else ""
        of_torch = (file.full_name(mask.func) or "").startswith("torch.")
        return of_torch or (method in OF_TENSORS and not project.functions(method))
    return isinstance(mask, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison))


def _given_otherwise(file: PythonFile, function: cst.FunctionDef | None, name: str, known: int) -> bool:
    """Whether a name is also given a value by a loop, an unpacking or the like."""
    if function is None:
        return True
    names = [node for node in descendants(function.body, cst.Name) if node.value == name]  # type: ignore[attr-defined]
    return sum(stores(file, node) or isinstance(file.parent(node), (cst.Element, cst.For, cst.AsName)) for node in names) != known
