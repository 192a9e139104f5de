"""How the results of a loop's turns come together: stacked, joined or summed, in a comprehension or in a list that a loop fills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits.mapped.placed import placed
from trainflash.knobs.edits.statements import without
from trainflash.knobs.reading.expressions import given_to, is_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, keyword, positional, sole
from trainflash.knobs.splices import Splice

STACKED = ("torch.stack",)
JOINED = ("torch.cat", "torch.concat", "torch.concatenate")
WRAPPED = ("list", "tuple")


@dataclass(frozen=True)
class Join:
    """What the results of all rows become: `out_dims` of `torch.vmap`, and the text behind its call."""

    out: int = 0
    behind: str = ""


SUMMED = Join(behind=".sum(0)")


@dataclass(frozen=True)
class Turns:
    """A loop, what one of its turns does in front of its results, the results, and how those of all turns come together.

    `place` is the expression that becomes the joined result, None for a loop of statements, whose last one puts the result `into` a name.
    """

    node: cst.For | cst.ListComp | cst.GeneratorExp
    clause: cst.For | cst.CompFor
    front: tuple[cst.CSTNode, ...]
    results: tuple[cst.BaseExpression, ...]
    join: Join
    place: cst.BaseExpression | None = None
    into: str = ""  # `out = ` or `total += `
    begun: str = ""  # the sum that loops in the turn add to, which is the turn's own
    beside: tuple[Splice, ...] = ()

    @property
    def parts(self) -> tuple[cst.CSTNode, ...]:
        return (*self.front, *self.results)


def turns(file: PythonFile, node: cst.CSTNode) -> Turns:
    """Raises `UsageError` where the results of `node`'s turns are not joined in a way that is known."""
    return _statements(file, node) if isinstance(node, cst.For) else _comprehension(file, node)  # type: ignore[arg-type]


def _comprehension(file: PythonFile, node: cst.ListComp | cst.GeneratorExp) -> Turns:
    here, found = file.location(node), clauses(node)
    call = _call_around(file, node)
    summed = call is not None and file.full_name(call.func) == "sum" and len(call.args) == 1
    if any(each.ifs or each.asynchronous is not None for each in found) or (len(found) != 1 and not summed):
        raise refuse(f"{here}: `{file.text(node)}` is no plain comprehension over rows")
    if len(found) > 1:  # a sum of sums: the rows of the innermost clause at once, in each turn of the others
        gone = Splice(file.path, file.outer_span(found[-2].iter)[1], file.outer_span(found[-1].iter)[1], "")
        return Turns(node, found[-1], (), (node.elt,), SUMMED, place=node.elt, beside=(gone,))
    place, join, beside = gathered(file, node)
    return Turns(node, found[0], (), (node.elt,), join, place=place, beside=beside)


def gathered(file: PythonFile, node: cst.BaseExpression) -> tuple[cst.BaseExpression, Join, tuple[Splice, ...]]:
    """What becomes the joined results of an expression that gives one after the other, how they are joined, and what else is edited."""
    inner, call = node, _call_around(file, node)
    if call is not None and file.full_name(call.func) in WRAPPED and len(call.args) == 1:
        inner, call = call, _call_around(file, call)
    if call is not None and (join := _join(file, call)) is not None:
        return call, join, ()
    up = file.parent(inner)
    if isinstance(up, cst.Assign) and len(up.targets) == 1 and isinstance(up.targets[0].target, cst.Name):
        _, join, itself = _joined_later(file, up.targets[0].target)
        return inner, join, (itself,)
    raise refuse(f"{file.location(node)}: its results are not stacked, joined or summed")


def _call_around(file: PythonFile, node: cst.BaseExpression) -> cst.Call | None:
    """The call whose first argument `node` is."""
    arg = file.parent(node)
    call = file.parent(arg) if isinstance(arg, cst.Arg) else None
    return call if isinstance(call, cst.Call) and call.args[0] is arg and arg.keyword is None and not arg.star else None  # type: ignore[union-attr]


def _join(file: PythonFile, call: cst.Call) -> Join | None:
    """What `torch.stack(rows, 1)`, `torch.cat(rows)` or `sum(rows)` makes of the rows; None for any other call."""
    name = file.full_name(call.func)
    if name == "sum" and len(call.args) == 1:
        return SUMMED
    if name not in (*STACKED, *JOINED) or len(call.args) > 2 or keyword(call, "out") is not None:
        return None
    given = positional(call, 1) or keyword(call, "dim") or keyword(call, "axis")
    dim = literal(given.value) if given is not None else 0
    if not isinstance(dim, int) or isinstance(dim, bool) or (given is None and len(call.args) == 2):
        return None
    if name in STACKED:
        return Join(dim)
    return Join(dim, f".flatten({dim}, {dim + 1})") if dim >= 0 else Join(dim - 1, f".flatten({dim - 1}, {dim})")


def _joined_later(file: PythonFile, name: cst.Name, filling: cst.Call | None = None) -> tuple[cst.Call, Join, Splice]:
    """The one call that joins the list `name`, which else is asked for its length alone, and what becomes of that call.

    Raises `UsageError` without one.
    """
    owner = file.function_around(name) or file.module
    reads = [each for each in _named(file, owner, name.value) if not isinstance(file.parent(each), cst.AssignTarget)]
    reads = [each for each in reads if _appended(file, each) is not filling or filling is None]
    calls = [_call_around(file, each) for each in reads]
    joins = [(call, join) for call in calls if call is not None and (join := _join(file, call)) is not None]
    lengths = [call for call in calls if call is not None and file.full_name(call.func) == "len"]
    filled = file.span(filling or name)[1]
    early = any(file.span(each)[0] < filled for each in reads)
    if len(joins) != 1 or len(joins) + len(lengths) != len(reads) or early or len(given_to(owner, name.value)) != 1:
        raise refuse(f"{file.location(name)}: the list `{name.value}` has other uses than to be stacked, joined or summed once")
    (call, join), text = joins[0], name.value
    if lengths and join == SUMMED:
        join, text = Join(), f"{name.value}{SUMMED.behind}"
    if lengths and join != Join():
        raise refuse(f"{file.location(lengths[0])}: `{name.value}`, joined, has another length")
    return call, join, Splice(file.path, *file.span(call), text)


def _named(file: PythonFile, owner: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    for node in descendants(owner, cst.Name):
        if node.value == name and is_name(file, node):  # type: ignore[attr-defined,arg-type]
            yield node  # type: ignore[misc]


def _appended(file: PythonFile, name: cst.Name) -> cst.Call | None:
    """The call `name.append(x)`, where it is a statement."""
    up = file.parent(name)
    call = file.parent(up) if isinstance(up, cst.Attribute) and up.attr.value == "append" else None
    return call if isinstance(call, cst.Call) and len(call.args) == 1 and isinstance(file.parent(call), cst.Expr) else None


def _statements(file: PythonFile, node: cst.For) -> Turns:
    here = file.location(node)
    if node.asynchronous is not None or node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
        raise refuse(f"{here}: is no plain loop over rows")
    if isinstance(node.body.body[-1], cst.For):
        return _nested(file, node)
    front, last = tuple(node.body.body[:-1]), sole(node.body.body[-1])
    if last is None:
        raise refuse(f"{here}: its last statement does not put a result somewhere")
    if isinstance(last, cst.Expr):
        return _filled(file, node, front, last)
    if _places(last):
        return _placed(file, node)
    added = last if isinstance(last, cst.AugAssign) and isinstance(last.operator, cst.AddAssign) else None
    name, value = (dotted(added.target), added.value) if added is not None else _added_to(file, last)
    if name is None or value is None:
        raise refuse(f"{here}: its last statement adds nothing to a sum")
    if any(_told(file, part, name) for part in (*front, value)):
        raise refuse(f"{here}: a turn reads `{name}`, the sum so far")
    into = f"{name} += " if added is not None else f"{name} = {name} + "
    return Turns(node, node, front, (value,), SUMMED, into=into)


def _places(line: cst.CSTNode | None) -> bool:
    """`out[i] = x` and `a[i], b[i] = x`."""
    targets = list(each.target for each in line.targets) if isinstance(line, cst.Assign) else []
    return len(targets) == 1 and all(isinstance(each, cst.Subscript) for each in _apart(targets[0]))


def _apart(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [each.value for each in target.elements] if isinstance(target, cst.Tuple) else [target]


def _placed(file: PythonFile, node: cst.For) -> Turns:
    """A loop whose turns end with assignments to rows of tensors."""
    lines: Sequence[cst.CSTNode] = node.body.body
    first = len(lines)
    while first and _places(sole(lines[first - 1])):
        first -= 1
    assigns: list[cst.Assign] = [sole(line) for line in lines[first:]]  # type: ignore[misc]
    targets = [each for assign in assigns for each in _apart(assign.targets[0].target)]
    into = [placed(file, node, target, beside=len(targets) > 1) for target in targets]
    if len(into) > 1 and any(each.dim for each in into):
        raise refuse(f"{file.location(node)}: its results are columns of several tensors")
    if len(assigns) > 1 and len(targets) > len(assigns):
        raise refuse(f"{file.location(node)}: its results are put into rows in several ways")
    beside = without(file, [each.made for each in into if each.made is not None])
    results = tuple(assign.value for assign in assigns)
    return Turns(
        node, node, tuple(lines[:first]), results, Join(into[0].dim), into=f"{', '.join(each.whole for each in into)} = ", beside=beside
    )


def _nested(file: PythonFile, node: cst.For) -> Turns:
    """A loop whose turn ends with a loop that ends so, until one adds to a sum: each turn makes a sum of its own."""
    inner: cst.CSTNode = node
    while isinstance(inner, cst.For) and inner.orelse is None and isinstance(inner.body, cst.IndentedBlock):
        inner = inner.body.body[-1]
    turn = None if isinstance(inner, cst.For) else _statements(file, file.parent(file.parent(inner)))  # type: ignore[arg-type]
    if turn is None or turn.join != SUMMED or turn.begun or turn.place is not None or turn.beside:
        raise refuse(f"{file.location(node)}: its innermost loop adds nothing to a sum")
    name = turn.into.split()[0]
    front = tuple(node.body.body)
    read = [each for part in front for each in descendants(part, (cst.Name, cst.Attribute)) if dotted(each) == name]
    if "." in name or len(read) != turn.into.count(name):
        raise refuse(f"{file.location(node)}: a turn reads `{name}`, the sum so far")
    return Turns(node, node, front, (read[0],), turn.join, into=turn.into, begun=name)  # type: ignore[arg-type]


def _added_to(file: PythonFile, last: cst.CSTNode) -> tuple[str | None, cst.BaseExpression | None]:
    """The name and the summand of `total = total + x`."""
    if not isinstance(last, cst.Assign) or len(last.targets) != 1 or not isinstance(last.value, cst.BinaryOperation):
        return None, None
    name = dotted(last.targets[0].target)
    if name is None or not isinstance(last.value.operator, cst.Add) or dotted(last.value.left) != name:
        return None, None
    return name, last.value.right


def _told(file: PythonFile, part: cst.CSTNode, name: str) -> bool:
    return any(dotted(each) == name for each in descendants(part, (cst.Name, cst.Attribute)))


def _filled(file: PythonFile, node: cst.For, front: tuple[cst.CSTNode, ...], last: cst.Expr) -> Turns:
    """A loop at whose end a list is appended to that is empty in front of it and joined behind it."""
    here, call = file.location(node), last.value
    name = call.func.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) else None
    if not isinstance(name, cst.Name) or _appended(file, name) is not call:
        raise refuse(f"{here}: its last statement does not put a result somewhere")
    owner = file.function_around(node) or file.module
    appends = [each for each in _named(file, owner, name.value) if _appended(file, each) is not None]
    begun = [each for each in descendants(owner, cst.Assign) if any(dotted(t.target) == name.value for t in each.targets)]  # type: ignore[attr-defined]
    empty = len(begun) == 1 and isinstance(begun[0].value, cst.List) and not begun[0].value.elements  # type: ignore[attr-defined]
    line = file.statement(begun[0]) if empty else None
    alone = line is not None and sole(line) is begun[0] and len(begun[0].targets) == 1  # type: ignore[attr-defined]
    if len(appends) != 1 or line is None or not alone or file.parent(line) is not file.parent(node):
        raise refuse(f"{here}: the list `{name.value}` is not empty in front of the loop and filled by it alone")
    if file.span(line)[0] > file.span(node)[0]:
        raise refuse(f"{here}: the list `{name.value}` is made behind the loop")
    joined, join, itself = _joined_later(file, name, call)  # type: ignore[arg-type]
    if file.inside(joined, node):
        raise refuse(f"{here}: the list `{name.value}` is joined in the loop that fills it")
    beside = (*without(file, [begun[0]]), itself)
    return Turns(node, node, front, (call.args[0].value,), join, into=f"{name.value} = ", beside=beside)
