"""What plainly reads the padding of a batch, or has room for so many positions and no more: a wider batch would change or break it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional

PLACES = ("torch.arange", "arange")
COLUMN = 1  # the usual place of the width: rows, columns


def none(project: Project, places: set[int]) -> None:
    """Raises `UsageError` where the program depends on how wide a batch is; `places` are the dimensions that hold the width."""
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, cst.Subscript) and COLUMN in places and _last_column(node):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is the last column, which would be padding")
            if not isinstance(node, cst.Call):
                continue
            if callees.called_name(node) == "pad_packed_sequence" and keyword(node, "total_length") is None:
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` gives rows as wide as the longest sample, and no wider")
            if callees.called_name(node) == "mean" and _over(file, node) in places:
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` counts padding")


def room(project: Project) -> Iterator[tuple[str, int]]:
    """Tables of positions that a network looks up for each column, and for how many they have room where that is known."""
    for file in project.parsed("arange"):
        for call in file.calls:
            if len(call.args) != 1 or not _counts_columns(file, call.args[0].value):
                continue
            made = _table(project, call)
            for where, size in made:
                yield f"{where.location(size)}: the table of positions `{short(file.text(call))}`", _number(project, where, size)


def _counts_columns(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` numbers the columns of a batch: `torch.arange(x.shape[1])`, itself or under a name."""
    given = given_to(file.function_around(node) or file.module, dotted(node) or "") if isinstance(node, cst.Name) else [node]
    return any(callees.called_name(each) in PLACES for value in given for each in descendants(value, cst.Call))  # type: ignore[arg-type]


def _table(project: Project, call: cst.Call) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """How many rows the embedding that is called has, by the lines that make one of that name."""
    name = dotted(call.func) or ""
    found = []
    for file in project.parsed("Embedding") if name else ():
        for each in given_to(file.module, name):
            if isinstance(each, cst.Call) and (file.full_name(each.func) or "").endswith("nn.Embedding"):
                size = positional(each, 0) or keyword(each, "num_embeddings")
                found += [(file, size.value)] if size is not None else []
    return found


def _number(project: Project, file: PythonFile, node: cst.BaseExpression) -> int:
    """A number that is typed or can be followed; 0 where it is not known."""
    value = literal(node)
    if value is UNKNOWN:
        try:
            found = sources.Resolver(project).source(file, node)
        except UsageError:
            found = None
        value = found.value if found is not None else UNKNOWN
    return value if isinstance(value, int) else 0


def _last_column(node: cst.Subscript) -> bool:
    """Whether `node` is `x[:, -1]`, or that with more behind it."""
    if len(node.slice) < 2:
        return False
    rows, column = node.slice[0].slice, node.slice[1].slice
    whole = isinstance(rows, cst.Slice) and rows.lower is None and rows.upper is None
    return whole and isinstance(column, cst.Index) and literal(column.value) == -1


def _over(file: PythonFile, call: cst.Call) -> int | None:
    """The dimension over which a mean is taken, where it is written out."""
    own = isinstance(call.func, cst.Attribute) and file.full_name(call.func) not in ("torch.mean", "numpy.mean")
    given = keyword(call, "dim") or keyword(call, "axis") or positional(call, 0 if own else 1)
    value = literal(given.value) if given is not None else None
    return value if isinstance(value, int) else None
