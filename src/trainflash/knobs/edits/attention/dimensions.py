"""Attention of three dimensions, for which torch has no fused kernel: one more in front of all that it is given, and taken away behind."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.attention.chain import operand
from trainflash.knobs.edits.attention.place import attention_place, only_call
from trainflash.knobs.kinds import FourDimensions
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, has_splat, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

FUNCTION = "scaled_dot_product_attention"
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
    if any(isinstance(value, cst.Subscript) and file.text(value).endswith("[None]") for value in tensors):
        raise refuse(f"{here}: a dimension is added already")
    for value in tensors[3:]:
        _is_no_none(file, value)
    splices = tuple(Splice(file.path, *file.outer_span(value), f"{operand(file, value)}[None]") for value in tensors)
    return (Target(here, None, lambda value: (*splices, Splice(file.path, end, end, "[0]")), f"attention at {here}", "four dimensions"),)


def _is_no_none(file: PythonFile, mask: cst.BaseExpression) -> None:
    """Raises `UsageError` where a mask may be None: a parameter that need not be given, or one of two."""
    function = file.function_around(mask)
    if function is not None and isinstance(mask, cst.Name):
        for param in descendants(function.params, cst.Param):
            if param.name.value == mask.value and param.default is not None:  # type: ignore[attr-defined]
                raise refuse(f"{file.location(mask)}: the mask `{mask.value}` may be None")
    if isinstance(mask, cst.IfExp):
        raise refuse(f"{file.location(mask)}: the mask `{short(file.text(mask))}` may be None")
