"""What does not go together with autocast: losses that it forbids, sums into tensors of another type, double precision."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, keyword
from trainflash.knobs.scene import Target

FORBIDDEN = ("torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy", "torch.binary_cross_entropy")
OTHER = re.compile("64|16|8|nf4|fp4|engine")  # how libraries say another precision than float32
DOUBLE = ("torch.float64", "torch.double")
MAKES = ("torch.zeros", "torch.ones", "torch.empty", "torch.full")  # of float32 where nothing else is said
# Methods that want both tensors to be of one type, which autocast sees to for none of these.
ONE_TYPE = (
    "index_add", "index_add_", "index_copy", "index_copy_", "index_put_", "index_reduce", "index_reduce_", "masked_scatter",
    "masked_scatter_", "scatter", "scatter_", "scatter_add_", "scatter_reduce", "scatter_reduce_",
)  # fmt: skip


def bears(project: Project) -> None:
    """Raises `UsageError` where the program shows something that would fail, or gain nothing, under autocast."""
    for file in project.parsed():
        for call in file.calls:
            name = file.full_name(call.func) or ""
            if name in FORBIDDEN:
                raise refuse(f"{file.location(call)}: `{short(file.text(call.func))}` is refused under autocast on a GPU")
            if name == "torch.set_default_dtype" and call.args and file.full_name(call.args[0].value) in DOUBLE:
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` asks for double precision, which autocast leaves as it is")
            if _mixes(file, call):
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` puts numbers of 16 bits into a tensor of 32")


def was_single(target: Target, argument: str, wanted: str) -> None:
    """Raises `UsageError` where the program itself chose another precision than float32."""
    said = "" if target.current is UNKNOWN else str(target.current)
    if OTHER.search(said) and said != wanted:
        raise refuse(f"{target.location}: the program chose {argument} {said!r} itself")


def _mixes(file: PythonFile, call: cst.Call) -> bool:
    """Whether a tensor that is made without a type is given, at some places, what is computed: a typed number fits each type."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ONE_TYPE or not call.args:
        return False
    given = keyword(call, "src") or keyword(call, "source") or keyword(call, "value") or call.args[-1]
    if literal(given.value) is not UNKNOWN or (isinstance(given.value, cst.Call) and file.full_name(given.value.func) in MAKES):
        return False
    node = call.func.value
    if isinstance(node, cst.Name):
        around = file.function_around(call) or file.module
        made = given_to(around, node.value)
        return bool(made) and all(_of_single(file, value) for value in made)
    return _of_single(file, node)


def _of_single(file: PythonFile, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and file.full_name(node.func) in MAKES and keyword(node, "dtype") is None
