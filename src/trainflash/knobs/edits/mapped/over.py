"""What a loop goes over: the tensors whose rows it takes, along which dimension, and what it calls one row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits.mapped.tensors import tensor
from trainflash.knobs.effects import changes
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, is_name, literal, place_in, plain_names, refuse, short
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, targets_of
from trainflash.knobs.reading.sizes import size_of, sizes_of
from trainflash.schema import Location


@dataclass(frozen=True)
class Row:
    """One argument of the function that is mapped: its name, the text of the tensor whose rows it takes, and their dimension."""

    name: str
    of: str
    dim: int


@dataclass(frozen=True)
class Over:
    """The rows that a loop takes, and the bytes of its body that say one of them by its number, with the name that it has instead."""

    rows: tuple[Row, ...]
    renamed: tuple[tuple[int, int, str], ...] = ()

    def text(self, file: PythonFile, node: cst.BaseExpression) -> str:
        """The text of `node`, a part of the loop's body, with names in place of numbers."""
        return self.between(file, *file.outer_span(node))

    def between(self, file: PythonFile, start: int, end: int) -> str:
        """The same of the bytes from `start` to `end`."""
        at, found = start, []
        for begin, stop, name in sorted(self.renamed):
            if start <= begin and stop <= end:
                found += [file.raw[at:begin].decode("utf-8"), name]
                at = stop
        return "".join(found) + file.raw[at:end].decode("utf-8")


def over(project: Project, file: PythonFile, target: cst.BaseExpression, whole: cst.BaseExpression, parts: Sequence[cst.CSTNode]) -> Over:
    """What a loop of `target` over `whole` takes; `parts` are its body. Raises `UsageError` for anything but rows of tensors."""
    here, called = file.location(whole), file.full_name(whole.func) if isinstance(whole, cst.Call) else None
    names = plain_names(target)
    if names is None or len(set(names)) != len(names):
        raise refuse(f"{here}: `{file.text(target)}` is not one name for each tensor")
    given = [arg.value for arg in whole.args] if isinstance(whole, cst.Call) else []
    if called in ("range", "enumerate", "zip") and any(arg.keyword is not None or arg.star for arg in whole.args):  # type: ignore[attr-defined]
        raise refuse(f"{here}: `{short(file.text(whole))}` is not read here")
    if called == "range" and len(given) == 1 and len(names) == 1:
        return _by_number(project, file, names[0], given[0], parts)
    if called == "enumerate" and len(given) == 1 and len(names) == 2:
        plain = Over((_row(project, file, names[1], given[0]),))
        if not any(True for _ in _uses(file, names[0], parts)):
            return plain
        numbered = _by_number(project, file, names[0], None, parts)
        return Over((*plain.rows, *_as_many(here, numbered.rows, plain.rows)), numbered.renamed)
    if called == "zip" and len(given) == len(names):
        return together(project, file, here, list(zip(names, given, strict=True)))
    if len(names) != 1 or called in ("range", "enumerate", "zip"):
        raise refuse(f"{here}: `{short(file.text(whole))}` gives several things in each turn")
    return Over((_row(project, file, names[0], whole),))


def together(project: Project, file: PythonFile, here: Location, named: Sequence[tuple[str, cst.BaseExpression]]) -> Over:
    """One row of each tensor in each turn, as `zip` and `map` give them."""
    rows = [_row(project, file, name, each) for name, each in named]
    return Over(tuple(_as_many(here, rows, rows)))


def _row(project: Project, file: PythonFile, name: str, whole: cst.BaseExpression) -> Row:
    """A row of `whole`, also of `x.unbind(dim)`. Raises `UsageError` where that is a list."""
    if isinstance(whole, cst.Call) and isinstance(whole.func, cst.Attribute) and whole.func.attr.value == "unbind":
        method = file.full_name(whole.func) != "torch.unbind"
        of = whole.func.value if method else whole.args[0].value
        given = [arg.value for arg in (whole.args if method else whole.args[1:])]
        dim = literal(given[0]) if given else 0
        if isinstance(dim, int) and len(given) < 2:
            tensor(project, file, of)
            return Row(name, file.text(of), dim)
    tensor(project, file, whole)
    return Row(name, file.text(whole), 0)


def _as_many(here: Location, rows: Sequence[Row], others: Sequence[Row]) -> Iterator[Row]:
    """`rows` with no more of each tensor than the shortest of `others` has, as `zip` and `enumerate` take them; `torch.vmap` would fail."""
    for row in rows:
        lengths = {(each.of, each.dim): each for each in others if (each.of, each.dim) != (row.of, row.dim)}.values()
        for each in (row, *lengths) if lengths else ():
            if each.dim < -1 or re.fullmatch(r"[\w.]+(\[[^()]*\])?", each.of) is None:
                raise refuse(f"{here}: whether `{short(each.of)}` has as many rows as the others is not known")
        counted = [f"len({each.of})" if each.dim == 0 else f"{each.of}.shape[{each.dim}]" for each in lengths]
        count = counted[0] if len(counted) == 1 else f"min({', '.join(counted)})"
        yield Row(row.name, _first(row.of, row.dim, count), row.dim) if counted else row


def _uses(file: PythonFile, name: str, parts: Sequence[cst.CSTNode]) -> Iterator[cst.Name]:
    for part in parts:
        for node in descendants(part, cst.Name):
            if node.value == name and is_name(file, node):  # type: ignore[attr-defined,arg-type]
                yield node  # type: ignore[misc]


def _by_number(project: Project, file: PythonFile, number: str, count: cst.BaseExpression | None, parts: Sequence[cst.CSTNode]) -> Over:
    """Rows that the body takes by their number, as `x[i]` or `x[:, i]`; `count` of them, None: as many as there are."""
    found: dict[tuple[str, int], str] = {}
    renamed = []
    bound = {each.value for part in parts for each in descendants(part, cst.Name) if isinstance(file.parent(each), cst.AssignTarget)}  # type: ignore[attr-defined]
    for node in _uses(file, number, parts):
        taken, dim = taken_by(file, node)
        stored = taken is None or isinstance(file.parent(taken), (cst.AssignTarget, cst.AugAssign))
        if stored or changes.root(taken.value) in ("", number) or changes.root(taken.value) in bound:
            raise refuse(f"{file.location(node)}: `{number}` is used for more than to take a row of a tensor")
        tensor(project, file, taken.value)
        key = (file.text(taken.value), dim)
        name = found.setdefault(key, _free(file, f"{key[0].split('.')[-1]}_row", set(found.values())))
        rest = [file.text(each) for each in taken.slice[1:]] if dim == 0 and len(taken.slice) > 1 else []
        renamed.append((*file.span(taken), f"{name}[{', '.join(each.rstrip(', ') for each in rest)}]" if rest else name))
    if not found:
        raise refuse(f"{file.location(parts[0])}: no row of a tensor is taken by `{number}`")
    whole = None if count is None else sized(file, count)
    if count is not None and whole is None and not isinstance(count, (cst.Name, cst.Attribute, cst.Integer)):
        raise refuse(f"{file.location(count)}: whether `{short(file.text(count))}` may be less than none is not known")
    rows = [Row(name, _cut(file, of, dim, count if whole != (of, dim) else None), dim) for (of, dim), name in found.items()]
    return Over(tuple(rows), tuple(renamed))


def taken_by(file: PythonFile, node: cst.Name) -> tuple[cst.Subscript | None, int]:
    """The subscript that takes a row by `node`, and its dimension."""
    index = file.parent(node)
    element = file.parent(index) if isinstance(index, cst.Index) and index.value is node else None
    subscript = file.parent(element) if isinstance(element, cst.SubscriptElement) else None
    if not isinstance(subscript, cst.Subscript) or dotted(subscript.value) is None:
        return None, 0
    where = list(subscript.slice).index(element)  # type: ignore[arg-type]
    before, behind = subscript.slice[:where], subscript.slice[where + 1 :]
    if len(before) == 1 and not behind and isinstance(before[0].slice, cst.Index) and isinstance(before[0].slice.value, cst.Ellipsis):
        return subscript, -1
    if not all(_everything(each) for each in before) or (where and not all(_everything(each) for each in behind)):
        return None, 0
    if any(isinstance(each, cst.Name) and each.value == node.value for other in behind for each in descendants(other, cst.Name)):
        return None, 0
    return subscript, where


def _everything(element: cst.SubscriptElement) -> bool:
    part = element.slice
    return isinstance(part, cst.Slice) and part.lower is None and part.upper is None and part.step is None


def sized(file: PythonFile, count: cst.BaseExpression, depth: int = 2) -> tuple[str, int] | None:
    """The tensor and the dimension that `count` is the size of."""
    measured = size_of(count)
    if measured is not None:
        return file.text(measured[0]), measured[1]
    if isinstance(count, cst.Name) and depth:
        owner = file.function_around(count) or file.module
        given = given_to(owner, count.value)
        found = sized(file, given[0], depth - 1) if len(given) == 1 else None if given else _unpacked(file, owner, count.value)
        return found if found is not None and _given_once(owner, found[0]) else None
    return None


def _given_once(owner: cst.CSTNode, name: str) -> bool:
    """Whether the tensor whose size has a name of its own is the same all through the function."""
    params = descendants(owner.params, cst.Param) if isinstance(owner, cst.FunctionDef) else ()
    given = [node for node in descendants(owner, (*ASSIGNS, cst.For, cst.AsName)) for target in targets_of(node) if name in _told(target)]
    return len(given) + any(each.name.value == name for each in params) <= 1  # type: ignore[attr-defined]


def _told(target: cst.BaseExpression) -> set[str | None]:
    parts = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    return {dotted(each) for each in parts}


def _unpacked(file: PythonFile, owner: cst.CSTNode, name: str) -> tuple[str, int] | None:
    """For `n, width = x.shape`."""
    for node in descendants(owner, cst.Assign):
        target = node.targets[0].target  # type: ignore[attr-defined]
        whole = sizes_of(node.value)  # type: ignore[attr-defined]
        place = place_in(target, name) if isinstance(target, cst.Tuple) else None
        if whole is not None and place is not None:
            return file.text(whole), place
    return None


def _cut(file: PythonFile, of: str, dim: int, count: cst.BaseExpression | None) -> str:
    """`of` with no more rows than the loop takes."""
    return of if count is None else _first(of, dim, file.text(count))


def _first(of: str, dim: int, count: str) -> str:
    """The first `count` rows of `of`."""
    return f"{of}[..., :{count}]" if dim < 0 else f"{of}[{':, ' * dim}:{count}]"


def _free(file: PythonFile, name: str, used: set[str]) -> str:
    taken = used | {node.value for node in file.nodes if isinstance(node, cst.Name)}
    while name in taken:
        name += "_"
    return name
