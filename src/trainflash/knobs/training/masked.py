"""Whether a network leaves padding out: what it makes of a row must not depend on how much stands behind the row's own end."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import UNKNOWN, argument_node, given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, own_method, targets_of

POOLS = {"amax", "amin", "logsumexp", "max", "mean", "median", "min", "norm", "std", "sum", "var"}
POSITIONS = (1, -2)  # the dimension of places in rows of numbers, or of vectors
RECURRENT = {"GRU", "LSTM", "RNN"}
TOLD = (
    "mask",
    "length",
    "lens",
    "pack_padded",
    "pad_packed",
    "nested",
    "ne",
    "is_pad",
    "keep",
    "valid",
)  # what leaves padding out


def leaves_out(project: Project) -> None:
    """Raises `UsageError` where a network takes a mean, or the like, over all places of a row, or its last, and is told of no end."""
    for file in project.parsed("forward"):
        for owner in file.each(cst.ClassDef):
            forward = own_method(owner, "forward")
            if forward is None or _is_told(owner):
                continue
            for node in _over_places(file, owner, forward):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` sees the padding, of which there would be less")


def _is_told(owner: cst.ClassDef) -> bool:
    """Whether the class speaks of masks or lengths, or compares what it is given with the padding."""
    words = [each.value.lower() for each in descendants(owner, cst.Name)]  # type: ignore[attr-defined]
    said = any(word == told or (len(told) > 3 and told in word) for word in words for told in TOLD)
    return said or any(isinstance(each.operator, cst.NotEqual) for each in descendants(owner, cst.ComparisonTarget))  # type: ignore[attr-defined]


def _over_places(file: PythonFile, owner: cst.ClassDef, forward: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    for call in descendants(forward.body, cst.Call):
        own = (file.full_name(call.func) or "").startswith("torch.")  # type: ignore[attr-defined]
        if callees.called_name(call) in POOLS and isinstance(call.func, cst.Attribute):  # type: ignore[arg-type,attr-defined]
            dim = argument_node(file, call, "dim", 1 if own else 0)  # type: ignore[arg-type]
            known = literal(dim) if dim is not None else UNKNOWN
            if type(known) is int and known in POSITIONS and not _weighs(call, own):  # type: ignore[arg-type]
                yield call
        elif _is_recurrent(file, owner, call) and _state_is_used(file, owner, call):  # type: ignore[arg-type]
            yield call
    for node in descendants(forward.body, cst.Subscript):
        parts = [part.slice for part in node.slice]  # type: ignore[attr-defined]
        whole = len(parts) > 1 and isinstance(parts[0], cst.Slice) and parts[0].lower is None and parts[0].upper is None
        if whole and isinstance(parts[1], cst.Index) and literal(parts[1].value) == -1:
            yield node


def _weighs(call: cst.Call, own: bool) -> bool:
    """Whether a sum is one of products: what each place is multiplied by may leave padding out."""
    pooled = call.args[0].value if own else call.func.value  # type: ignore[attr-defined]
    product = isinstance(pooled, cst.BinaryOperation) and isinstance(pooled.operator, cst.Multiply)
    return callees.called_name(call) == "sum" and product


def _is_recurrent(file: PythonFile, owner: cst.ClassDef, call: cst.Call) -> bool:
    made = given_to(owner, dotted(call.func) or "")
    return any(isinstance(each, cst.Call) and (file.full_name(each.func) or "").split(".")[-1] in RECURRENT for each in made)


def _state_is_used(file: PythonFile, owner: cst.ClassDef, call: cst.Call) -> bool:
    """Whether more than the output of each place is used, or that of a place knows those behind it."""
    made = given_to(owner, dotted(call.func) or "")
    ways = [keyword(each, "bidirectional") for each in made if isinstance(each, cst.Call)]
    both = any(told is not None and literal(told.value) is not False for told in ways)
    up = file.parent(call)
    if both:
        return True
    if isinstance(up, cst.Subscript):
        index = up.slice[0].slice
        return not (isinstance(index, cst.Index) and literal(index.value) == 0)
    targets = targets_of(up) if isinstance(up, cst.Assign) else []
    first = targets[0] if targets else None
    if not isinstance(first, (cst.Tuple, cst.List)) or len(first.elements) != 2:
        return True
    second = first.elements[1].value
    return dotted(second) != "_"
