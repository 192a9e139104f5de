"""What a loop goes over: the tensors whose rows it takes, along which dimension, and what it calls one row.

Plain numbers that a loop goes over, or by which it counts, become a tensor of them where a turn only computes with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.mapped.tensors import shown, tensor
from trainflash.knobs.effects import changes
from trainflash.knobs.effects.given import bound, unpacked
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, is_name, literal, place_in, plain_names, refuse, short
from trainflash.knobs.reading.plain_values import PlainValues
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, clauses, descendants, dotted, elements_of, targets_of
from trainflash.knobs.reading.sizes import size_of, sizes_of
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

COMPUTES = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget)
DECIDES = (cst.BooleanOperation, cst.Not, cst.SubscriptElement, cst.FormattedString)
NUMBERS_OF = (cst.Name, cst.Attribute, cst.List, cst.Tuple)


@dataclass(frozen=True)
class Row:
    """One argument of the function that is mapped: its name, the text of the tensor whose rows it takes, and their dimension.

    `count` says how many rows it has, where the text is of a tensor that is made of numbers there.
    """

    name: str
    of: str
    dim: int
    count: str | None = None

    @property
    def many(self) -> str:
        """The text of how many rows there are."""
        return self.count or (f"len({self.of})" if self.dim == 0 else f"{self.of}.shape[{self.dim}]")


@dataclass(frozen=True)
class Over:
    """The rows that a loop takes, and the bytes of its body that say one of them by its number, with the name that it has instead."""

    rows: tuple[Row, ...]
    renamed: tuple[tuple[int, int, str], ...] = ()
    needed: tuple[Splice, ...] = ()  # imports

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
    """What a loop of `target` over `whole` takes; `parts` are its body. Raises `UsageError` for anything but rows and numbers."""
    here, called = file.location(whole), file.full_name(whole.func) if isinstance(whole, cst.Call) else None
    names = plain_names(target)
    if names is None or len(set(names)) != len(names):
        raise refuse(f"{here}: `{file.text(target)}` is not one name for each tensor")
    given = [arg.value for arg in whole.args] if isinstance(whole, cst.Call) else []
    if called in ("range", "enumerate", "zip") and any(arg.keyword is not None or arg.star for arg in whole.args):  # type: ignore[attr-defined]
        raise refuse(f"{here}: `{short(file.text(whole))}` is not read here")
    taking = _Taking(project, file, here, parts)
    if called == "range" and len(given) == 1 and len(names) == 1:
        return taking.by_number(names[0], given[0])
    if called == "range" and len(names) == 1:
        return taking.all_of((taking.counted(names[0], ", ".join(file.text(each) for each in given)),))
    if called == "enumerate" and len(given) == 1 and len(names) == 2:
        plain = taking.row(names[1], given[0])
        if not any(True for _ in _uses(file, names[0], parts)):
            return taking.all_of((plain,))
        numbered = taking.by_number(names[0], None, plain)
        return taking.all_of((plain, *_as_many(here, numbered.rows, (plain,))), numbered.renamed)
    if called == "zip" and len(given) == len(names):
        return taking.all_of(tuple(_together(taking, list(zip(names, given, strict=True)))))
    if len(names) != 1 or called in ("range", "enumerate", "zip"):
        raise refuse(f"{here}: `{short(file.text(whole))}` gives several things in each turn")
    return taking.all_of((taking.row(names[0], whole),))


def together(project: Project, file: PythonFile, here: Location, named: Sequence[tuple[str, cst.BaseExpression]]) -> Over:
    """One row of each tensor in each turn, as `map` gives them."""
    taking = _Taking(project, file, here, ())
    return taking.all_of(tuple(_together(taking, named)))


def _together(taking: _Taking, named: Sequence[tuple[str, cst.BaseExpression]]) -> Iterator[Row]:
    rows = [taking.row(name, each) for name, each in named]
    return _as_many(taking.here, rows, rows)


class _Taking:
    """How one loop takes its rows; `parts` are its body, none where each row is only handed to a function."""

    def __init__(self, project: Project, file: PythonFile, here: Location, parts: Sequence[cst.CSTNode]) -> None:
        self.project, self.file, self.here, self.parts = project, file, here, parts
        self.needed: dict[Splice, None] = {}

    def all_of(self, rows: tuple[Row, ...], renamed: tuple[tuple[int, int, str], ...] = ()) -> Over:
        return Over(rows, renamed, tuple(self.needed))

    def row(self, name: str, whole: cst.BaseExpression) -> Row:
        """A row of `whole`, also of `x.unbind(dim)`, or a number of a list. Raises `UsageError` where that is a list of anything else."""
        file = self.file
        if isinstance(whole, cst.Call) and isinstance(whole.func, cst.Attribute) and whole.func.attr.value == "unbind":
            method = file.full_name(whole.func) != "torch.unbind"
            of = whole.func.value if method else whole.args[0].value
            given = [arg.value for arg in (whole.args if method else whole.args[1:])]
            dim = literal(given[0]) if given else 0
            if isinstance(dim, int) and len(given) < 2:
                tensor(self.project, file, of)
                return Row(name, file.text(of), dim)
        if self.parts and isinstance(whole, NUMBERS_OF) and PlainValues(self.project).entry(file, whole) == "number":
            self._only_computed_with(name)
            return self._numbers(name, "tensor", file.text(whole), f"len({file.text(whole)})")
        tensor(self.project, file, whole)
        return Row(name, file.text(whole), 0)

    def counted(self, name: str, limits: str) -> Row:
        """The numbers by which a loop counts from one of its limits to the other, which a turn only computes with."""
        self._only_computed_with(name)
        return self._numbers(name, "arange", limits, limits)

    def _only_computed_with(self, name: str) -> None:
        for node in _uses(self.file, name, self.parts):
            if not self._computes_with(node):
                raise refuse(f"{self.file.location(node)}: `{name}` is used for more than to compute with it")

    def _numbers(self, name: str, maker: str, of: str, count: str) -> Row:
        """Numbers that a turn computes with as a tensor, on the device of one of its own."""
        spelled, needed = imports.reach(self.file, "torch", maker)
        self.needed |= dict.fromkeys(needed)
        return Row(name, f"{spelled}({of}, device={self._tensor()}.device)", 0, count)

    def _tensor(self) -> str:
        """A tensor that the body computes with and that is there in front of the loop."""
        own = _bound(self.parts) | set(self.file.imported)
        for part in self.parts:
            for node in descendants(part, (cst.Name, cst.Attribute)):
                name = dotted(node) or ""
                variable = is_name(self.file, node) if isinstance(node, cst.Name) else name.startswith("self.") and name.count(".") == 1
                if variable and name.split(".")[0] not in own and shown(self.project, self.file, node):  # type: ignore[arg-type]
                    return name
        raise refuse(f"{self.here}: on which device a turn computes is not known")

    def _computes_with(self, node: cst.BaseExpression) -> bool:
        """Whether `node`, a number, is a side of an operator, where a tensor without dimensions may stand, too.

        Nothing may be decided by what comes of it, and another function than torch's must get a tensor of it either way.
        """
        file, met = self.file, False
        for up in file.ancestors(node):
            test = up.test if isinstance(up, (cst.If, cst.IfExp, cst.While, cst.CompIf)) else None
            if isinstance(up, cst.SubscriptElement) and isinstance(up.slice, cst.Index) and isinstance(up.slice.value, cst.Comparison):
                return True  # a mask
            if isinstance(up, DECIDES) or (test is not None and file.inside(node, test)):
                return False
            sides = [up.left, up.right] if isinstance(up, cst.BinaryOperation) else []
            if isinstance(up, cst.Comparison):
                sides = [up.left, *(each.comparator for each in up.comparisons)]
            met = met or any(shown(self.project, file, side) for side in sides if not file.inside(node, side))
            if (
                isinstance(up, cst.Call)
                and not met
                and not file.inside(node, up.func)
                and not (file.full_name(up.func) or "").startswith("torch.")
            ):
                return False
            if isinstance(up, cst.BaseStatement):
                break
        return isinstance(file.parent(node), COMPUTES)

    def by_number(self, number: str, count: cst.BaseExpression | None, beside: Row | None = None) -> Over:
        """Rows that the body takes by their number, as `x[i]` or `x[:, i]`, and the number itself where it computes with that.

        There are `count` of them; None: as many as `beside` has.
        """
        file, parts = self.file, self.parts
        found: dict[tuple[str, int], str] = {}
        listed: set[tuple[str, int]] = set()  # of `found`: lists of numbers
        renamed: list[tuple[int, int, str]] = []
        own, computed = _bound(parts), False
        for node in _uses(file, number, parts):
            taken, dim = taken_by(file, node)
            if taken is None and self._computes_with(node):
                computed = True
                continue
            if taken is not None and len(taken.slice) == 1 and isinstance(taken.value, cst.Name) and taken.value.value in own:
                computed = True  # an element of what the turn has made
                continue
            stored = taken is None or isinstance(file.parent(taken), (cst.AssignTarget, cst.AugAssign))
            if stored or changes.root(taken.value) in ("", number) or changes.root(taken.value) in own:
                raise refuse(f"{file.location(node)}: `{number}` is used for more than to take a row of a tensor or to compute with it")
            key = (file.text(taken.value), dim)
            if self._computes_with(taken) and PlainValues(self.project).entry(file, taken.value) == "number":
                listed.add(key)
            else:
                tensor(self.project, file, taken.value)
            name = found.setdefault(key, _free(file, f"{key[0].split('.')[-1]}_row", set(found.values())))
            renamed.append((*file.span(taken), name + _rest(file, taken, node)))
        if not found and not computed:
            raise refuse(f"{file.location(parts[0])}: no row of a tensor is taken by `{number}`")
        whole = None if count is None else sized(file, count)
        if count is not None and whole is None and not isinstance(count, (cst.Name, cst.Attribute, cst.Integer)):
            raise refuse(f"{file.location(count)}: whether `{short(file.text(count))}` may be less than none is not known")
        many = file.text(count) if count is not None else beside.many  # type: ignore[union-attr]
        rows = [
            self._numbers(name, "tensor", _first(of, dim, many), many)
            if (of, dim) in listed
            else Row(name, of if count is None or whole == (of, dim) else _first(of, dim, many), dim)
            for (of, dim), name in found.items()
        ]
        rows += [self._numbers(number, "arange", many, many)] if computed else []
        return self.all_of(tuple(rows), tuple(renamed))


def _as_many(here: Location, rows: Sequence[Row], others: Sequence[Row]) -> Iterator[Row]:
    """`rows` with no more of each tensor than the shortest of `others` has, as `zip` and `enumerate` take them; `torch.vmap` would fail."""
    for row in rows:
        lengths = {(each.of, each.dim): each for each in others if (each.of, each.dim) != (row.of, row.dim)}
        for each in (row, *lengths.values()) if lengths else ():
            if each.count is None and (each.dim < -1 or re.fullmatch(r"[\w.]+(\[[^()]*\])?", each.of) is None):
                raise refuse(f"{here}: whether `{short(each.of)}` has as many rows as the others is not known")
        counted = [each.many for each in lengths.values() if each.many != row.many]
        count = counted[0] if len(counted) == 1 else f"min({', '.join(counted)})"
        yield replace(row, of=_first(row.of, row.dim, count)) if counted else row


def _uses(file: PythonFile, name: str, parts: Sequence[cst.CSTNode]) -> Iterator[cst.Name]:
    for part in parts:
        for node in descendants(part, cst.Name):
            if node.value == name and is_name(file, node):  # type: ignore[attr-defined,arg-type]
                yield node  # type: ignore[misc]


def _bound(parts: Sequence[cst.CSTNode]) -> set[str]:
    """Variables that a turn gives a value, those of comprehensions, too."""
    own = {
        name for part in parts for each in descendants(part, cst.BaseComp) for clause in clauses(each) for name in unpacked(clause.target)
    }
    return own.union(*(bound(part) for part in parts))


def _rest(file: PythonFile, taken: cst.Subscript, node: cst.Name) -> str:
    """What is left of the index of `taken` where the row that `node` numbers has been taken."""
    left = [each for each in taken.slice if not (isinstance(each.slice, cst.Index) and each.slice.value is node)]
    whole = all(everything(each) or (isinstance(each.slice, cst.Index) and isinstance(each.slice.value, cst.Ellipsis)) for each in left)
    return "" if whole else f"[{', '.join(file.text(each).rstrip(', ') for each in left)}]"


def taken_by(file: PythonFile, node: cst.Name) -> tuple[cst.Subscript | None, int]:
    """The subscript that takes a row by `node`, and its dimension."""
    index = file.parent(node)
    element = file.parent(index) if isinstance(index, cst.Index) and index.value is node else None
    subscript = file.parent(element) if isinstance(element, cst.SubscriptElement) else None
    if not isinstance(subscript, cst.Subscript) or dotted(subscript.value) is None:
        return None, 0
    where = list(subscript.slice).index(element)  # type: ignore[arg-type]
    before, behind = subscript.slice[:where], subscript.slice[where + 1 :]
    if any(each.value == node.value for other in (*before, *behind) for each in descendants(other, cst.Name)):  # type: ignore[attr-defined]
        return None, 0
    if before and isinstance(before[0].slice, cst.Index) and isinstance(before[0].slice.value, cst.Ellipsis):
        return (subscript, -1 - len(behind)) if all(_one_dimension(file, each) for each in (*before[1:], *behind)) else (None, 0)
    return (subscript, where) if all(_one_dimension(file, each) for each in before) else (None, 0)


def _one_dimension(file: PythonFile, element: cst.SubscriptElement) -> bool:
    """Whether a part of an index stands for one dimension and says nothing of the others: a slice, or a whole number."""
    part = element.slice
    if isinstance(part, cst.Slice):
        return True
    if isinstance(part.value, cst.Name):
        heads = [up for up in file.ancestors(element) if isinstance(up, cst.For)]
        heads += [clause for up in file.ancestors(element) for clause in clauses(up)]
        return any(counter(file, each) == part.value.value for each in heads)
    return isinstance(literal(part.value), int) and not isinstance(literal(part.value), bool)


def counter(file: PythonFile, head: cst.For | cst.CompFor) -> str | None:
    """The name by which a loop counts: that of `range`, or the first one of `enumerate`."""
    counts = file.full_name(head.iter.func) if isinstance(head.iter, cst.Call) else None
    if counts == "enumerate":
        name = dotted(elements_of(head.target)[0])
        return name if name is not None and place_in(head.target, name) == 0 else None
    return dotted(head.target) if counts == "range" else None


def everything(element: cst.SubscriptElement) -> bool:
    """Whether a part of an index is `:`."""
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
    return {dotted(each) for each in elements_of(target)}


def _unpacked(file: PythonFile, owner: cst.CSTNode, name: str) -> tuple[str, int] | None:
    """For `n, width = x.shape`."""
    for node in descendants(owner, cst.Assign):
        target = node.targets[0].target  # type: ignore[attr-defined]
        whole = sizes_of(node.value)  # type: ignore[attr-defined]
        place = place_in(target, name) if isinstance(target, cst.Tuple) else None
        if whole is not None and place is not None:
            return file.text(whole), place
    return None


def _first(of: str, dim: int, count: str) -> str:
    """The first `count` rows of `of`."""
    return f"{of}[..., :{count}{', :' * (-1 - dim)}]" if dim < 0 else f"{of}[{':, ' * dim}:{count}]"


def _free(file: PythonFile, name: str, used: set[str]) -> str:
    taken = used | {node.value for node in file.nodes if isinstance(node, cst.Name)}
    while name in taken:
        name += "_"
    return name
