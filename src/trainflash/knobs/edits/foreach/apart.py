"""Whether the turns of a loop can be taken apart: none shares a tensor with another, reads what another changes, or ends the loop."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from trainflash.knobs.edits.foreach.rows import Rows
from trainflash.knobs.edits.foreach.turns import OF_TENSORS, Turns, names_in, zipped
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, is_name, refuse
from trainflash.knobs.reading.python_source import ASSIGNS, LOOPS, PythonFile, clauses, decorator_names, descendants, dotted, targets_of

OF_PAIRS = ("named_parameters", "named_buffers", "items")
UNIQUE = ("parameters", "named_parameters", "buffers", "named_buffers", "grad")  # a network's own lists name each tensor once
LISTING = ("list", "tuple", "reversed", "filter")
OF_KEYS = ("keys", "range", "state_dict")


def runs_through(file: PythonFile, node: cst.For) -> None:
    """Raises `UsageError` where a turn may end the loop, or something around it may catch that, or must compile it."""
    here = file.location(node)
    if any(True for _ in descendants(node.body, (cst.Return, cst.Yield, cst.Await, cst.Raise, cst.Assert))):
        raise refuse(f"{here}: a turn of the loop may be its last one")
    not_caught(file, node)
    for up in file.ancestors(node):
        if isinstance(up, cst.FunctionDef):
            compiled = "torch.jit.script" in decorator_names(file, up)
            given = any(file.full_name(call.func) == "torch.jit.script" and up.name.value in file.text(call) for call in file.calls)
            if compiled or given:
                raise refuse(f"{here}: TorchScript compiles the loop")


def not_caught(file: PythonFile, node: cst.CSTNode) -> None:
    """Raises `UsageError` where the function around `node` catches errors of turns: all turns at once would raise others."""
    for up in file.ancestors(node):
        if isinstance(up, cst.Try) and up.handlers:
            raise refuse(f"{file.location(node)}: an error in one turn would leave the others as they are, and is caught")
        if isinstance(up, cst.FunctionDef):
            return


def keys(file: PythonFile, node: cst.For) -> frozenset[str]:
    """Names of the loop that are another key in each turn. Raises `UsageError` where turns may share a tensor."""
    here, parts = file.location(node), zipped(node)
    whole = [file.text(part) for part in parts]
    if len(set(whole)) < len(whole) or any(isinstance(each, cst.Slice) for part in parts for each in descendants(part, cst.Slice)):
        raise refuse(f"{here}: a tensor may have a part in more than one turn")
    found: set[str] = set()
    targets = node.target.elements if isinstance(node.target, cst.Tuple) else ()
    first = targets[0].value if targets else node.target
    for part in parts:
        name = callees.called_name(part) if isinstance(part, cst.Call) else None
        if name in (*OF_PAIRS, *OF_KEYS, "enumerate"):
            found |= {first.value} if isinstance(first, cst.Name) and len(parts) == 1 else set()
        elif name not in (None, *OF_TENSORS, *LISTING) or not isinstance(part, (cst.Call, cst.Name, cst.Attribute, cst.Subscript)):
            raise refuse(f"{here}: whether `{file.text(part)}` gives each tensor once is not known")
    return frozenset(found)


def each_once(project: Project, file: PythonFile, node: cst.For) -> None:
    """Raises `UsageError` where a tensor may come in two turns: what is done to it twice is then done in another order."""
    for part in zipped(node):
        if not _distinct(project, file, node, part):
            raise refuse(f"{file.location(node)}: whether `{file.text(part)}` gives each tensor once is not known")


def _distinct(project: Project, file: PythonFile, node: cst.For, part: cst.BaseExpression, deep: int = 0) -> bool:
    """Whether `part` goes over tensors of which none comes twice, as far as the source says."""
    if isinstance(part, cst.Call):
        name, args = callees.called_name(part), [arg.value for arg in part.args]
        if name in (*LISTING, "enumerate", "range", "len", "zip"):
            return all(_distinct(project, file, node, arg, deep) for arg in args if not isinstance(arg, (cst.Lambda, cst.Integer)))
        if name in ("values", "items", "keys") and isinstance(part.func, cst.Attribute):
            of = part.func.value
            return not (isinstance(of, cst.Call) and callees.called_name(of) == "state_dict") or _distinct(project, file, node, of, deep)
        return name in UNIQUE or (name == "state_dict" and not any(_ties_weights(each) for each in project.parsed("torch")))
    if isinstance(part, (cst.ListComp, cst.GeneratorExp)):
        return _distinct(project, file, node, part.for_in.iter, deep)
    if isinstance(part, cst.Subscript):
        return True
    name = dotted(part)
    if name is None or deep > 3:
        return False
    function = file.function_around(node)
    owner = file.class_of(function) if function is not None and name.startswith("self.") else None
    made = given_to(owner or function or file.module, name) or given_to(file.module, name)
    return all(_distinct(project, file, node, each, deep + 1) for each in made if each is not part)


def _ties_weights(file: PythonFile) -> bool:
    """Whether a word in the file says that two layers share a weight, of which a `state_dict` names both."""
    return any(word in file.raw for word in (b"tie_weights", b"tied", b"tie_word", b".weight = "))


def reads_no_other(loop: Turns, rows: Rows) -> None:
    """Raises `UsageError` where something else reads what the statements behind the loop set, or they read what all turns change."""
    file, sets = loop.file, set(rows.made) | rows.kept
    wholes = {text for part in zipped(loop.node) for text in _wholes(file, part)}
    for line in (*loop.staying, *loop.tail):
        for node in descendants(line, (cst.Name, cst.Attribute)):
            if file.text(node) in wholes and not _by_key(file, node, rows.keys):
                raise refuse(f"{file.location(node)}: `{file.text(node)}` holds what other turns change")
    _own_entries(loop, rows)
    for line in loop.staying:
        for name in descendants(line, cst.Name):
            if name.value in sets - rows.own and is_name(file, name):  # type: ignore[attr-defined,arg-type]
                raise refuse(f"{file.location(name)}: `{name.value}` is what the turn before has left")  # type: ignore[attr-defined]
    function = file.function_around(loop.node)
    around = function.body if function is not None else file.module
    tail = [id(each) for line in loop.tail for each in descendants(line, cst.Name)]
    for name in descendants(around, cst.Name):
        told = name.value in sets | rows.turned and is_name(file, name) and id(name) not in tail  # type: ignore[attr-defined,arg-type]
        if told and not file.inside(name, loop.node) and not begins_anew(file, name):  # type: ignore[arg-type]
            raise refuse(f"{file.location(name)}: `{name.value}` is used outside the loop, too")  # type: ignore[attr-defined]


def _own_entries(loop: Turns, rows: Rows) -> None:
    """Raises `UsageError` where a turn reads another entry than its own of what the statements set or change by key, or where an entry that
    turns in front share is read behind the loop."""
    file = loop.file
    set_behind, set_in_front = (
        [each for each in _changed_by_key(lines) if not names_in(each.value) & (rows.own | set(rows.made))]  # other than a turn's own state
        for lines in (loop.tail, loop.staying)
    )
    held = {dotted(each.value) for each in set_behind} - {None}
    shared = {dotted(each.value) for each in set_in_front if not _by_key(file, each.value, rows.keys)} - {None}
    for line in (*loop.staying, *loop.tail):
        for node in descendants(line, cst.Subscript):
            name = dotted(node.value)  # type: ignore[attr-defined]
            behind = any(line is each for each in loop.tail) and name in shared
            if behind or (name in held and not _by_key(file, node.value, rows.keys)):  # type: ignore[attr-defined]
                raise refuse(f"{file.location(node)}: `{file.text(node)}` may be what another turn has set")


def _changed_by_key(lines: Sequence[cst.CSTNode]) -> list[cst.Subscript]:
    """What the lines assign to, or call a method of that changes it, by a key."""
    found: list[cst.CSTNode] = []
    for line in lines:
        found += [target for node in descendants(line, ASSIGNS) for target in targets_of(node)]
        found += [call.func.value for call in descendants(line, cst.Call) if callees.method_name(call).endswith("_")]  # type: ignore[attr-defined,arg-type]
    return [each for each in found if isinstance(each, cst.Subscript)]


def _wholes(file: PythonFile, part: cst.BaseExpression) -> set[str]:
    """Source of what holds the tensors that `part` goes over: `model` of `model.parameters()`, a list."""
    if isinstance(part, cst.Call):
        if callees.called_name(part) in (*LISTING, "enumerate", "range", "len", "chain"):
            return {text for arg in part.args for text in _wholes(file, arg.value)}
        inner = part.func.value if isinstance(part.func, cst.Attribute) else None
        return _wholes(file, inner) if inner is not None and callees.called_name(part) in (*OF_TENSORS, *OF_PAIRS, *OF_KEYS) else set()
    return {file.text(part)} if dotted(part) not in (None, "self") else set()


def _by_key(file: PythonFile, node: cst.CSTNode, keys: frozenset[str]) -> bool:
    """Whether `node` is only asked for what it holds under a turn's own key."""
    up = file.parent(node)
    index = up.slice[0].slice if isinstance(up, cst.Subscript) and up.value is node and len(up.slice) == 1 else None
    key = index.value if isinstance(index, cst.Index) else None
    asked = isinstance(up, cst.ComparisonTarget) or isinstance(file.parent(up), cst.Comparison) if up is not None else False
    return (isinstance(key, cst.Name) and key.value in keys) or asked or (isinstance(node, cst.Name) and not is_name(file, node))


def begins_anew(file: PythonFile, name: cst.Name) -> bool:
    """Whether `name` stands in a loop or a comprehension of its own that sets it first."""
    own = (clause for up in file.ancestors(name) for clause in clauses(up))
    if any(name.value in names_in(clause.target) for clause in own):
        return True
    loop = next((up for up in file.ancestors(name) if isinstance(up, LOOPS)), None)
    if loop is None:
        return False
    first = next(each for each in descendants(loop, cst.Name) if each.value == name.value)  # type: ignore[attr-defined]
    return isinstance(file.parent(first), cst.AssignTarget) or (isinstance(loop, cst.For) and file.inside(first, loop.target))
