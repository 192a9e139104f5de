"""Whether a turn of a loop only makes its result of its rows: nothing is drawn, counted or kept once for each row, nor handed on.

What a turn calls must be known: torch, methods of tensors, functions of the program that are looked into in the same way. Where it calls
something by a name that stands for none of these, such as a network, all networks and all lambdas of the program are looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from trainflash.knobs.edits.foreach.apart import not_caught, runs_through
from trainflash.knobs.edits.mapped.joins import Turns
from trainflash.knobs.edits.mapped.tensors import GIVE, layer_of_torch
from trainflash.knobs.effects import changes, given, purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, is_name, refuse, short
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, clauses, descendants, dotted, targets_of

LEAVES = (
    cst.Return,
    cst.Break,
    cst.Continue,
    cst.Yield,
    cst.Await,
    cst.NamedExpr,
    cst.Global,
    cst.Nonlocal,
    cst.Raise,
    cst.Try,
    cst.Assert,
)
ENDS = (cst.Global, cst.Nonlocal, cst.Try, cst.Yield, cst.Await)
PARTS = (cst.Attribute, cst.Subscript)
SINGLE = {"len", "range", "zip", "enumerate", "isinstance", "abs", "tuple", "list", "sum", "max", "min", "int", "float", "super", "dict"}
MORE = """
add addcmul all amax amin any argmin argsort atan bernoulli ceil chunk clamp_max clamp_min conj cross cumprod diag diagonal diff
dim dist div dot einsum eq erf expm1 fill_diagonal_ floor fmod ge gelu gt index_add isfinite isinf isnan kron le lerp log1p log2
logical_and logical_not logical_or logsumexp lt masked_select max maximum median min minimum mul_ add_ sub_ div_ nan_to_num ne
numel outer reciprocal relu_ rsqrt scatter scatter_add sign size sort split std_mean take topk trace trunc unbind var
"""
METHODS = GIVE | frozenset(MORE.split())
HERE_ONLY = {"requires_grad", "grad_fn", "is_leaf"}  # what torch says of a mapped tensor is not what it says of its row
AGAIN = "is done once for each row"

Function = tuple[PythonFile, cst.FunctionDef | cst.Lambda]
Part = tuple[PythonFile, cst.CSTNode, set[str]]  # and the names that are its own


def only_gives(project: Project, file: PythonFile, turns: Turns) -> None:
    """Raises `UsageError` where a turn does more than to make its result of its rows."""
    row = _bound(turns.clause.target)
    bound = {name for part in (turns.clause.target, *turns.front) for name in _bound(part)}
    for part in turns.parts:
        for node in descendants(part, LEAVES):
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` belongs to one turn of the loop")
    if isinstance(turns.node, cst.For):
        runs_through(file, turns.node)
        _leaves_nothing(file, turns.node, bound - {turns.begun})
        early = given.read_before_set(file, turns.front, row | {turns.begun})
        if early is not None:
            raise refuse(f"{file.location(early)}: `{early.value}` is read before the turn sets it")
    else:
        not_caught(file, turns.node)
    if not any(isinstance(each, cst.Name) and each.value in row for part in turns.parts for each in descendants(part, cst.Name)):
        raise refuse(f"{file.location(turns.node)}: a turn does not use its row")
    _makes_only(project, [(file, part, bound) for part in turns.parts])


def called_only_gives(project: Project, file: PythonFile, function: cst.BaseExpression) -> None:
    """The same of what `map` calls for each row: a function of the program's or of torch's, or a lambda."""
    not_caught(file, function)
    meant = _handed(project, file, function)
    _makes_only(project, [(where, each.body, _bound(each.body) | {param.name.value for param in _params(each)}) for where, each in meant])


def _handed(project: Project, file: PythonFile, function: cst.BaseExpression) -> Sequence[Function]:
    """What of the program runs for each row where `function` is handed to `map` or `torch.vmap`."""
    if isinstance(function, cst.Lambda):
        return [(file, function)]
    meant, full = list(callees.behind(project, file, function)), file.full_name(function) or ""
    if not meant and (not full.startswith("torch.") or full.split(".")[-1] in purity.RANDOM_TORCH):
        raise refuse(f"{file.location(function)}: what `{short(file.text(function))}` does once for each row is not known")
    return meant


def _makes_only(project: Project, parts: list[Part]) -> None:
    for where, body, own in _reached(project, parts):
        _changes_nothing(project, where, body, own)
        for node in descendants(body, (*ASSIGNS, *ENDS)):
            if isinstance(node, ENDS) or any(isinstance(target, cst.Attribute) for target in targets_of(node)):
                raise refuse(f"{where.location(node)}: `{short(where.text(node))}` {AGAIN}")
        for node in descendants(body, cst.Attribute):
            if node.attr.value in HERE_ONLY:  # type: ignore[attr-defined]
                raise refuse(f"{where.location(node)}: `{where.text(node)}` says something else of mapped rows")


def _changes_nothing(project: Project, file: PythonFile, part: cst.CSTNode, own: set[str]) -> None:
    outside = {each.value for each in descendants(part, cst.Name) if is_name(file, each)} - own  # type: ignore[attr-defined,arg-type]
    node = changes.changed(project, file, part, outside)
    if node is not None:
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` changes what others read, which {AGAIN}")


def _bound(part: cst.CSTNode) -> set[str]:
    """Names that `part` gives a value to, or that it is, as the target of a loop."""
    targets = [part] if isinstance(part, (cst.Name, cst.Tuple, cst.List)) else []
    targets += [each for node in descendants(part, (*ASSIGNS, cst.For, cst.CompFor)) for each in targets_of(node)]
    return {each.value for target in targets if not isinstance(target, PARTS) for each in descendants(target, cst.Name)}  # type: ignore[attr-defined]


def _leaves_nothing(file: PythonFile, loop: cst.For, bound: set[str]) -> None:
    """Raises `UsageError` where what a turn sets is used outside the loop, other than as the target of another loop."""
    for node in descendants(file.function_around(loop) or file.module, cst.Name):
        told = node.value in bound and is_name(file, node) and not file.inside(node, loop)  # type: ignore[attr-defined,arg-type]
        if told and not _of_another(file, node, loop):  # type: ignore[arg-type]
            raise refuse(f"{file.location(node)}: `{file.text(node)}` is also used outside the loop that sets it")


def _of_another(file: PythonFile, name: cst.Name, loop: cst.For) -> bool:
    for up in file.ancestors(name):
        targets = [each.target for each in clauses(up)] + ([up.target] if isinstance(up, cst.For) and not file.inside(loop, up) else [])
        if any(name.value in _bound(target) for target in targets):
            return not (isinstance(up, cst.For) and file.inside(name, up.iter))
    return False


def _reached(project: Project, parts: list[Part]) -> Iterator[Part]:
    """The parts of a turn, then bodies of functions and lambdas that it may run, with the names that are each one's own.

    Raises `UsageError` for a call that is none of torch's, of a tensor's, or of the program's.
    """
    todo = list(parts)
    yield from todo
    seen: set[int] = set()
    while todo:
        where, body, _ = todo.pop(0)
        for call in descendants(body, cst.Call):
            for other, each in _runs(project, where, call):  # type: ignore[arg-type]
                if id(each) not in seen:
                    seen.add(id(each))
                    inner = each.body  # type: ignore[attr-defined]
                    todo.append((other, inner, _bound(inner)))
                    yield todo[-1]


def _runs(project: Project, file: PythonFile, call: cst.Call) -> Sequence[Function]:
    """What of the program `call` may run."""
    here, full, name = file.location(call), file.full_name(call.func) or "", callees.called_name(call)
    if full.startswith("torch."):
        if name in purity.RANDOM_TORCH:
            raise refuse(f"{here}: `{short(file.text(call))}` draws anew for each row")
        return ()
    if isinstance(call.func, cst.Call) and file.full_name(call.func.func) == "torch.vmap" and call.func.args:
        return _handed(project, file, call.func.args[0].value)
    own = list(callees.meant(project, file, call))
    if own:
        return own
    method = isinstance(call.func, cst.Attribute) and name in METHODS and not callees.of_library(project, file, call)
    if method or full in SINGLE:
        return ()
    if (table := _table(project, file, call)) is not None:
        return table
    if _layers_of_torch(file, call):
        return ()
    if not _network(project, file, call):
        raise refuse(f"{here}: what `{short(file.text(call))}` does once for each row is not known")
    return [*callees.forwards(project), *_lambdas(project)]


def _table(project: Project, file: PythonFile, call: cst.Call) -> list[Function] | None:
    """The functions of a constant table, where `call` calls one after the other of them; None for any other call."""
    name = call.func.value if isinstance(call.func, cst.Name) else None
    over = [each.iter for up in file.ancestors(call) for each in clauses(up) if dotted(each.target) == name]
    over += [up.iter for up in file.ancestors(call) if isinstance(up, cst.For) and dotted(up.target) == name]
    if name is None or len(over) != 1:
        return None
    table = over[0]
    if isinstance(table, cst.Name):
        values = given_to(file.module, table.value)
        table = values[0] if len(values) == 1 else table
    if not isinstance(table, (cst.Tuple, cst.List)):
        return None
    named = [callees.defined(project, dotted(each.value) or "") for each in table.elements]
    return [each for functions in named for each in functions] if all(len(each) == 1 for each in named) else None


def _layers_of_torch(file: PythonFile, call: cst.Call) -> bool:
    """Whether `self.x(…)` calls layers of torch's own, which call nothing of the program's."""
    name, owner = dotted(call.func) or "", file.class_around(call)
    made = given_to(owner, name) if owner is not None and name.startswith("self.") else []
    return bool(made) and all(_of_torch_alone(file, each) for each in made)


def _of_torch_alone(file: PythonFile, made: cst.BaseExpression) -> bool:
    kind = layer_of_torch(file, made)
    return bool(kind) and (kind != "Sequential" or all(not arg.star and _of_torch_alone(file, arg.value) for arg in made.args))  # type: ignore[attr-defined]


def _network(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether a network or a loss may be called: a parameter, or what is given only objects of torch and of the program's classes."""
    name, function = dotted(call.func), file.function_around(call)
    if name is None:
        return False
    if isinstance(call.func, cst.Name):
        if function is not None and any(each.name.value == name for each in _params(function)):
            return True
        values = [(file, value) for value in given_to(function or file.module, name) or given_to(file.module, name)]
    else:
        attribute = f"self.{name.split('.')[-1]}"
        values = [(where, value) for where in project.parsed(attribute) for value in given_to(where.module, attribute)]
    return bool(values) and all(isinstance(value, cst.Call) and _makes_network(project, where, value) for where, value in values)


def _makes_network(project: Project, file: PythonFile, call: cst.Call) -> bool:
    full, name = file.full_name(call.func) or "", callees.called_name(call)
    return full.startswith("torch.") or any(True for _ in project.parsed(f"class {name}"))


def _params(function: cst.FunctionDef | cst.Lambda) -> Iterator[cst.Param]:
    return descendants(function.params, cst.Param)  # type: ignore[return-value]


def _lambdas(project: Project) -> list[tuple[PythonFile, cst.Lambda]]:
    return [(file, node) for file in project.parsed("lambda") for node in file.nodes if isinstance(node, cst.Lambda)]
