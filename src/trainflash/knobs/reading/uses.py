"""Who else reads a value: what decides whether an edit would change more than it means to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.lookups import key_of, reads_key
from trainflash.knobs.reading.python_source import PythonFile, dotted, sole, string_value
from trainflash.schema import Location

LOG_CALLS = {"print", "info", "debug", "warning", "log", "log_params", "log_hparams", "config", "vars", "pprint"}
CHANGES = ("update", "setdefault", "pop", "popitem", "clear")  # methods of a dictionary that hand nothing on but what they are asked
COPIES = ("dict", "copy", "deepcopy")
TAKE_KEYS = {"set", "frozenset", "list", "tuple", "sorted", "len", "iter", "difference", "issubset", "issuperset", "isdisjoint", "union"}
OF_WORKERS = {"num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout", "worker_init_fn", "pin_memory"}
STORES = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)


@dataclass(frozen=True)
class Use:
    """One more reader of a value: another loader's argument, something that only shows or checks it, or anything else."""

    location: Location
    kind: Literal["loader", "shown", "other"]
    text: str


def of_local(file: PythonFile, node: cst.Name, references: Iterable) -> list[Use]:
    """Other readers of the local variable that `node` reads; `references` are LibCST's accesses of it."""
    return [_use(file, access.node) for access in references if access.node is not node]


def of_constant(node: cst.Name, project: Project) -> list[Use]:
    """Other readers of the module's variable that `node` reads, in all files of the program."""
    readers = project.each((node.value,), lambda where, other: other is not node and _loads(where, other, node.value))
    return [_use(where, reader) for where, reader in readers]


def _loads(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    if not isinstance(node, cst.Name) or node.value != name:
        return False
    up = file.parent(node)
    if isinstance(up, (*STORES, cst.ImportAlias, cst.Param, cst.AsName, cst.FunctionDef, cst.ClassDef)):
        return (
            isinstance(up, (cst.AnnAssign, cst.Param)) and node is not getattr(up, "target", None) and node is not getattr(up, "name", None)
        )
    if (isinstance(up, cst.Arg) and up.keyword is node) or _unpacked_to(file, node):
        return False
    return not (isinstance(up, cst.Attribute) and up.attr is node)


def of_key(file: PythonFile, node: cst.CSTNode, keys: tuple[str, ...], project: Project, followed: Sequence[cst.CSTNode] = ()) -> list[Use]:
    """Other readers of `x.key`, `x["key"]` or `x.get("key")` than those that were `followed` here, as `part["key"]` of `part = x["part"]`.

    Where both name the key before it, that one must agree too.
    """
    found = []
    for where in project.parsed(keys[-1]):
        for other in where.nodes:
            here = (where is file and (other is node or file.inside(node, other))) or any(other is each for each in followed)
            if here or not reads_key(other, keys):
                continue
            if not isinstance(where.parent(other), STORES) and not _unpacked_to(where, other) and not _callee(where, other):
                found.append(_use(where, other))
    return found


def of_spread(file: PythonFile, spread: cst.BaseExpression, name: str, project: Project) -> list[Use]:
    """Others that read `name` of the dictionary `spread`, which a call unpacks, or that are handed the whole of it."""
    key = key_of(spread)
    if isinstance(spread, cst.Name):
        scope = file.scope(spread)
        bound = [each for each in (scope[spread.value] if scope is not None else ()) if hasattr(each, "references")]
        places = [(file, access.node) for each in bound for access in each.references]
    elif key is not None:
        places = [
            (where, node)
            for where in project.parsed(key[1])
            for node in where.nodes
            if reads_key(node, (key[1],)) and not _of_library(project, where, node)
        ]
    else:
        places = []
    found = [(where, node) for where, node in places if node is not spread and _hands_on(where, node, name) and not _renewed(where, node)]
    return [_use(where, node, within=isinstance(where.parent(node), cst.StarredDictElement)) for where, node in found]


def _of_library(project: Project, file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is a part of a module's name, as in `import torch.utils.data`, and no setting."""
    if any(isinstance(up, (cst.Import, cst.ImportFrom)) for up in file.ancestors(node)):
        return True
    full = file.import_of(node)
    return full is not None and not full.startswith(".") and not project.has_module(full)


def _hands_on(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    """Whether what stands around the dictionary `node` may get `name` of it."""
    up = file.parent(node)
    if isinstance(up, cst.Subscript) and up.value is node:
        place = key_of(up)
        return not isinstance(file.parent(up), STORES) and (place is None or place[1] == name)
    if isinstance(up, cst.Attribute) and up.value is node:
        call = file.parent(up)
        if not isinstance(call, cst.Call) or call.func is not up:
            return up.attr.value == name
        place = key_of(call)
        return place[1] == name if place is not None else up.attr.value not in (*CHANGES, "keys")
    return not isinstance(up, STORES) and not _of_keys(file, node)


def _of_keys(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether nothing but the keys of a dictionary is taken: `set(node)`, `name in node`, `for name in node`."""
    up = file.parent(node)
    if isinstance(up, (cst.For, cst.CompFor)):
        return up.iter is node
    if isinstance(up, cst.ComparisonTarget):
        return isinstance(up.operator, (cst.In, cst.NotIn))
    call = file.parent(up) if isinstance(up, cst.Arg) and up.keyword is None and not up.star else None
    return isinstance(call, cst.Call) and (dotted(call.func) or "").split(".")[-1] in TAKE_KEYS


def _renewed(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a name is given a copy of its own: `options = dict(options)`."""
    small = sole(file.statement(node))
    if (
        not isinstance(small, cst.Assign)
        or len(small.targets) != 1
        or not isinstance(small.value, cst.Call)
        or not isinstance(node, cst.Name)
    ):
        return False
    return (dotted(small.value.func) or "").split(".")[-1] in COPIES and dotted(small.targets[0].target) == node.value


def _unpacked_to(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is one of several targets of an assignment."""
    up = file.parent(node)
    around = file.parent(up) if isinstance(up, cst.Element) else None
    return isinstance(around, (cst.Tuple, cst.List)) and isinstance(file.parent(around), cst.AssignTarget)


def _callee(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return isinstance(node, cst.Attribute) and isinstance(up, cst.Call) and up.func is node


def caller_use(file: PythonFile, call: cst.Call) -> Use:
    """Another caller of the function that holds the edited call."""
    return Use(file.location(call), "loader", file.text(call).split("\n")[0])


def only_refuses(node: cst.If) -> bool:
    """Whether the branch does nothing but refuse: it raises, exits, or calls a parser's `error`."""
    last = node.body.body[-1] if node.body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        return (dotted(small.value.func) or "").split(".")[-1] in ("error", "exit", "fail")
    return isinstance(small, cst.Raise)


def _checks(file: PythonFile, statement: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether `statement` reads `node` only to refuse what it holds; whether it allows a new value, the first start shows."""
    if isinstance(statement, (cst.Assert, cst.Raise)):
        return True
    return isinstance(statement, cst.If) and file.inside(node, statement.test) and only_refuses(statement)


def _sets_workers(branch: cst.If) -> bool:
    """Whether the branch does nothing but set options of a loader's workers: `kw["persistent_workers"] = True`, `kw.update(…)`."""
    if branch.orelse is not None:
        return False
    small = [each for line in branch.body.body for each in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])]
    return bool(small) and all(_sets_option(each) for each in small)


def _sets_option(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        place = key_of(node.targets[0].target)
        return place is not None and place[1] in OF_WORKERS
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "update":
        return False
    given = [arg.keyword.value if arg.keyword is not None else None for arg in call.args]
    if len(call.args) == 1 and isinstance(call.args[0].value, cst.Dict):
        given = [string_value(each.key) if isinstance(each, cst.DictElement) else None for each in call.args[0].value.elements]
    return bool(given) and set(given) <= OF_WORKERS


def _use(file: PythonFile, node: cst.CSTNode, *, within: bool = False) -> Use:
    """`within`: it becomes part of another dictionary of arguments."""
    kind: Literal["loader", "shown", "other"] = "loader" if within else "other"
    for up in file.ancestors(node):
        if isinstance(up, cst.Arg) and up.keyword is not None and up.keyword.value in OF_WORKERS:
            kind = "loader"
            break
        if isinstance(up, cst.DictElement) and string_value(up.key) in OF_WORKERS:
            kind = "loader"
            break
        if isinstance(up, (cst.BaseCompoundStatement, cst.BaseSmallStatement)):
            if isinstance(up, cst.If) and file.inside(node, up.test) and _sets_workers(up):
                kind = "loader"
                break
            kind = "shown" if _checks(file, up, node) else kind
            break
        if isinstance(up, cst.FormattedString):
            kind = "shown"
        elif isinstance(up, cst.Call) and not file.inside(node, up.func):
            name = (dotted(up.func) or "").split(".")[-1]
            if name.endswith("Loader"):
                kind = "loader"
                break
            if name in LOG_CALLS:
                kind = "shown"
    return Use(file.location(node), kind, file.text(node))
