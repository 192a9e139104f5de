"""A loop that works on one tensor after another, such as parameters and their averages: operations on lists of all of them.

The statements at the end of a turn that are understood as operations on its tensors go behind the loop, which then only collects them. That
gives the same numbers where turns do not share tensors, draw no random numbers there, and read nothing that such a statement set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.foreach.inlined import inlined
from trainflash.knobs.edits.foreach.rows import VIEWS, Rows, receivers
from trainflash.knobs.edits.statements import whole_lines
from trainflash.knobs.kinds import ForeachOperations
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, is_name, refuse
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, clauses, decorator_names, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice, edited

OF_TENSORS = ("parameters", "buffers", "values")
OF_PAIRS = ("named_parameters", "named_buffers", "items")
UNIQUE = ("parameters", "named_parameters", "buffers", "named_buffers", "grad")  # a network's own lists name each tensor once
LISTING = ("list", "tuple", "reversed", "filter")
OF_KEYS = ("keys", "range", "state_dict")
MAKES = tuple(f"torch.{name}" for name in ("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "clone"))
NOTHING = "no loop over tensors is here whose turns could be made at once"


@dataclass(frozen=True)
class _Loop:
    """A loop, the block whose last statements work on tensors, and the number of statements in it that stay."""

    file: PythonFile
    node: cst.For
    block: cst.IndentedBlock
    stay: int

    @property
    def tail(self) -> Sequence[cst.CSTNode]:
        return self.block.body[self.stay :]


def foreach_operations(edit: ForeachOperations, scene: Scene) -> tuple[Target, ...]:
    """The innermost loop at the line, else those of its function or of the function that it calls. Raises `UsageError` without one."""
    file, place = scene.source("does the work")
    reasons: list[UsageError] = []
    for where, node in _near(scene, file, place.line):
        try:
            splices = _at_once(where, node)
        except UsageError as bad:
            reasons.append(bad)
            try:
                splices = _written_out(scene, where, node)
            except UsageError:
                continue
        at = where.location(node)
        return (Target(at, None, lambda value: splices, f"the loop at {at}", "lists"),)  # noqa: B023 - returned at once
    raise reasons[0] if reasons else refuse(f"{place}: {NOTHING}")


def _written_out(scene: Scene, file: PythonFile, node: cst.For) -> tuple[Splice, ...]:
    """The same where a function of the file does the work of a turn: its statements move into the loop first."""
    after, loop = inlined(scene.project, file, node)
    return (Splice(file.path, 0, len(file.raw), edited(after.raw, _at_once(after, loop)).decode("utf-8")),)


def _near(scene: Scene, file: PythonFile, line: int) -> Iterator[tuple[PythonFile, cst.For]]:
    """Loops that may be meant, each once: around the line, in the function that it calls, in its own function, around that one's call."""
    loops = [node for node in file.nodes if isinstance(node, cst.For)]
    around = [loop for loop in loops if file.covers(loop, line)]
    meant = [list(callees.meant(scene.project, file, call)) for call in file.calls if file.lines_of(call)[0] == line]
    called = [found[0] for found in meant if len(found) == 1]
    function = next((each for each in reversed(file.functions) if file.covers(each, line)), None)
    own = [loop for loop in loops if function is not None and file.inside(loop, function)]
    inside = [(where, loop) for where, each in called for loop in descendants(each, cst.For)]
    sites = callers.sites(scene.project, file, function) if function is not None else []
    outside = [(where, up) for where, site in sites[:1] for up in where.loops_around(site) if isinstance(up, cst.For)]
    seen: set[int] = set()
    for where, loop in (*((file, each) for each in reversed(around)), *inside, *((file, each) for each in reversed(own)), *outside):
        if id(loop) not in seen:
            seen.add(id(loop))
            yield where, loop  # type: ignore[misc]


def _at_once(file: PythonFile, node: cst.For) -> tuple[Splice, ...]:
    here = file.location(node)
    if node.asynchronous is not None or node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
        raise refuse(f"{here}: {NOTHING}")
    _runs_through(file, node)
    keys = _keys(file, node)
    spelled, needed = imports.reach(file, "torch", "_foreach_mul_")
    if spelled == "_foreach_mul_":
        raise refuse(f"{here}: torch is not imported as a module")
    torch = spelled.removesuffix("_foreach_mul_")
    around = file.function_around(node)
    taken = frozenset(each.value for each in descendants(around or file.module, cst.Name))  # type: ignore[attr-defined]
    reason: UsageError | None = None
    for loop in _splits(file, node):
        rows = Rows(file, torch, _own(loop), keys, taken, _known(loop), _known_lists(loop), unsteady=_set_in_front(loop))
        try:
            written = rows.of(loop.tail, "")
            _apart(loop, rows)
        except UsageError as bad:
            reason = bad
            continue
        if rows.operations < max(1, rows.loops):
            break
        if len(written) > 1 or written[0].count("_foreach_") > 1 or "[" in written[0]:  # else each tensor has its turn as before
            _each_once(file, node)
        return (*needed, *_written(loop, rows, written))
    raise reason or refuse(f"{here}: {NOTHING}")


def _runs_through(file: PythonFile, node: cst.For) -> None:
    """Raises `UsageError` where a turn may end the loop, or something around it may catch that, or must compile it."""
    here = file.location(node)
    if any(True for _ in descendants(node.body, (cst.Return, cst.Yield, cst.Await, cst.Raise, cst.Assert))):
        raise refuse(f"{here}: a turn of the loop may be its last one")
    for up in file.ancestors(node):
        if isinstance(up, cst.Try) and up.handlers:
            raise refuse(f"{here}: an error in one turn would leave the others as they are, and is caught")
        if isinstance(up, cst.FunctionDef):
            compiled = "torch.jit.script" in decorator_names(file, up)
            given = any(file.full_name(call.func) == "torch.jit.script" and up.name.value in file.text(call) for call in file.calls)
            if compiled or given:
                raise refuse(f"{here}: TorchScript compiles the loop")


def _splits(file: PythonFile, node: cst.For) -> Iterator[_Loop]:
    """All ways to split the turns, the longest part for lists first; a name that is only given a part of the turn's stays in the loop."""
    block = node.body
    assert isinstance(block, cst.IndentedBlock)
    while True:
        for stay in range(len(block.body)):
            if not _alias(block.body[stay]):
                yield _Loop(file, node, block, stay)
        last = block.body[-1]
        if not isinstance(last, cst.If) or last.orelse is not None or not isinstance(last.body, cst.IndentedBlock):
            return
        block = last.body


def _alias(line: cst.CSTNode) -> bool:
    """`name = p.grad`, `state = self.state[p]` and the like."""
    small = sole(line)
    value = small.value if isinstance(small, cst.Assign) else None
    while isinstance(value, (cst.Attribute, cst.Subscript)):
        value = value.value
    return isinstance(value, cst.Name)


def _keys(file: PythonFile, node: cst.For) -> frozenset[str]:
    """Names of the loop that are another key in each turn. Raises `UsageError` where turns may share a tensor."""
    here, parts = file.location(node), _zipped(node)
    whole = [file.text(part) for part in parts]
    if len(set(whole)) < len(whole) or any(isinstance(each, cst.Slice) for part in parts for each in descendants(part, cst.Slice)):
        raise refuse(f"{here}: a tensor may have a part in more than one turn")
    keys: set[str] = set()
    targets = node.target.elements if isinstance(node.target, cst.Tuple) else ()
    first = targets[0].value if targets else node.target
    for part in parts:
        name = callees.called_name(part) if isinstance(part, cst.Call) else None
        if name in (*OF_PAIRS, *OF_KEYS, "enumerate"):
            keys |= {first.value} if isinstance(first, cst.Name) and len(parts) == 1 else set()
        elif name not in (None, *OF_TENSORS, *LISTING) or not isinstance(part, (cst.Call, cst.Name, cst.Attribute, cst.Subscript)):
            raise refuse(f"{here}: whether `{file.text(part)}` gives each tensor once is not known")
    return frozenset(keys)


def _each_once(file: PythonFile, node: cst.For) -> None:
    """Raises `UsageError` where a tensor may come in two turns: what is done to it twice is then done in another order."""
    for part in _zipped(node):
        if not _distinct(file, node, part):
            raise refuse(f"{file.location(node)}: whether `{file.text(part)}` gives each tensor once is not known")


def _distinct(file: PythonFile, node: cst.For, part: cst.BaseExpression, deep: int = 0) -> bool:
    """Whether `part` goes over tensors of which none comes twice, as far as the source says."""
    if isinstance(part, cst.Call):
        name, args = callees.called_name(part), [arg.value for arg in part.args]
        if name in (*LISTING, "enumerate", "range", "len", "zip", "filter"):
            return all(_distinct(file, node, arg, deep) for arg in args if not isinstance(arg, (cst.Lambda, cst.Integer)))
        if name in ("values", "items", "keys") and isinstance(part.func, cst.Attribute):
            return not _ties_weights(file) if callees.called_name(part.func.value) == "state_dict" else True  # type: ignore[arg-type]
        return name in (*UNIQUE, "state_dict") and not (name == "state_dict" and _ties_weights(file))
    if isinstance(part, (cst.ListComp, cst.GeneratorExp)):
        return _distinct(file, node, part.for_in.iter, deep)
    if isinstance(part, cst.Subscript):
        return True
    name = dotted(part)
    if name is None or deep > 3:
        return False
    function = file.function_around(node)
    owner = file.class_of(function) if function is not None and name.startswith("self.") else None
    made = given_to(owner or function or file.module, name) or given_to(file.module, name)
    return all(_distinct(file, node, each, deep + 1) for each in made if each is not part)


def _ties_weights(file: PythonFile) -> bool:
    """Whether a word in the file says that two layers share a weight, of which a `state_dict` names both."""
    return any(word in file.raw for word in (b"tie_weights", b"tied", b"tie_word", b".weight = "))


def _zipped(node: cst.For) -> list[cst.BaseExpression]:
    whole = node.iter
    if isinstance(whole, cst.Call) and dotted(whole.func) == "zip":
        return [arg.value for arg in whole.args if arg.keyword is None]
    return [whole]


def _own(loop: _Loop) -> frozenset[str]:
    """Names that each turn sets to something of its own: by the loop's target, and in the statements that stay."""
    found = {each.value for each in descendants(loop.node.target, cst.Name)}  # type: ignore[attr-defined]
    set_at: dict[str, int] = {}
    set_in_loop = {
        name
        for node in descendants(loop.node.body, (cst.Assign, cst.AugAssign))
        for target in _targets(node)
        if not (isinstance(node, cst.Assign) and _plain_once(loop, node))
        for name in _names(target)
    }
    for line in _staying(loop):
        found |= {name for node in descendants(line, (cst.AsName, cst.Import, cst.ImportFrom)) for name in _names(node)}
        for node in descendants(line, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)):
            targets = _targets(node)
            plain = isinstance(node, cst.Assign) and loop.file.parent(node) is line
            for target in targets:
                for part, value in _pairs(target, node.value if plain else None):  # type: ignore[attr-defined]
                    if not isinstance(part, cst.Name):
                        continue
                    read = _names(value) if value is not None else set()
                    shared = value is not None and not any(descendants(value, cst.Call)) and not read & (found | set_in_loop)
                    set_at[part.value] = set_at.get(part.value, 0) + 1
                    found |= {part.value} if not shared or set_at[part.value] > 1 else set()
    return frozenset(found)


def _targets(node: cst.CSTNode) -> list[cst.BaseExpression]:
    return [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]


def _plain_once(loop: _Loop, node: cst.Assign) -> bool:
    """Whether what a turn assigns does not read what it is assigned to, such as `lr = group["lr"]` and unlike `lr = lr * 0.9`."""
    names = {name for target in _targets(node) for name in _names(target)}
    return not names & _names(node.value)


def _set_in_front(loop: _Loop) -> frozenset[str]:
    """Words of the attributes and keys that the staying part of a turn sets or calls methods of."""
    found: set[str] = set()
    for line in _staying(loop):
        for node in descendants(line, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
            for target in _targets(node):
                if isinstance(target, (cst.Attribute, cst.Subscript)):
                    found |= set(re.findall(r"\w+", loop.file.text(target))[1:])
    return frozenset(found)


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression | None) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Each part of what is assigned to, and what it is given: its own part of a tuple that is written out, or of the one behind a star."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return [(target, value)]
    parts = [each.value for each in target.elements]
    if not isinstance(value, (cst.Tuple, cst.List)):
        return [(part, value) for part in parts]
    given = [(each.value, isinstance(each, cst.StarredElement)) for each in value.elements]
    if sum(star for _, star in given) > 1 or len(given) > len(parts):
        return [(part, None) for part in parts]
    spread = [each for each, star in given for _ in range(len(parts) - len(given) + 1 if star else 1)]
    return list(zip(parts, spread, strict=True))


def _names(node: cst.CSTNode) -> set[str]:
    return {each.value for each in descendants(node, cst.Name)}  # type: ignore[attr-defined]


def _staying(loop: _Loop) -> list[cst.CSTNode]:
    """Statements of a turn that stay in the loop, and conditions around the others."""
    found: list[cst.CSTNode] = list(loop.block.body[: loop.stay])
    up = loop.file.parent(loop.block)
    while isinstance(up, cst.If):
        found.append(up.test)
        outer = loop.file.parent(up)
        assert isinstance(outer, cst.IndentedBlock)
        found += outer.body[:-1]
        up = loop.file.parent(outer)
    return found


def _known(loop: _Loop) -> frozenset[str]:
    """Source of what is a tensor in each turn, as the source says."""
    file, node = loop.file, loop.node
    found, lists = set(receivers(file, node.body)), _known_lists(loop)
    targets = [each.value for each in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
    parts = _zipped(node)
    for part, target in zip(parts, targets, strict=False):
        if (isinstance(part, cst.Call) and callees.called_name(part) in OF_TENSORS) or file.text(part) in lists:
            found.add(file.text(target))
    if len(parts) == 1 and isinstance(parts[0], cst.Call) and callees.called_name(parts[0]) in ("named_parameters", "named_buffers"):
        found |= {file.text(target) for target in targets[1:]}
    found |= {file.text(each) for each in targets if isinstance(each, cst.Name) and _only_changed(file, node, each.value)}
    for line in _staying(loop):
        for assign in descendants(line, cst.Assign):
            if _makes_tensor(file, assign.value) and len(assign.targets) == 1:  # type: ignore[attr-defined]
                found.add(file.text(assign.targets[0].target))  # type: ignore[attr-defined]
    return frozenset(found)


def _only_changed(file: PythonFile, node: cst.For, name: str) -> bool:
    """Whether the turns do nothing with `name` behind a statement such as `name *= 2`: of a number that would change nothing."""
    changes = [each for each in descendants(node.body, cst.AugAssign) if dotted(each.target) == name]  # type: ignore[attr-defined]
    targets = [id(each.target) for each in changes]  # type: ignore[attr-defined]
    first = min((file.span(each)[1] for each in changes), default=0)
    reads = [each for each in descendants(node.body, cst.Name) if each.value == name and id(each) not in targets]  # type: ignore[attr-defined]
    return bool(changes) and not any(file.span(each)[0] >= first for each in reads)


def _known_lists(loop: _Loop) -> frozenset[str]:
    """Names of the function that are given gradients, or a list of parameters."""
    around = loop.file.function_around(loop.node) or loop.file.module
    found = set()
    for node in descendants(around, cst.Assign):
        value = node.value.args[0].value if _is_call_of(node.value, "list", "tuple") and node.value.args else node.value  # type: ignore[attr-defined]
        gradients = isinstance(value, cst.Call) and (loop.file.full_name(value.func) or "").endswith("autograd.grad")
        if gradients or _is_call_of(value, *OF_TENSORS):
            found |= {loop.file.text(target.target) for target in node.targets}  # type: ignore[attr-defined]
    return frozenset(found)


def _is_call_of(node: cst.BaseExpression, *names: str) -> bool:
    return isinstance(node, cst.Call) and callees.called_name(node) in names


def _makes_tensor(file: PythonFile, node: cst.BaseExpression) -> bool:
    made = isinstance(node, cst.Call) and (file.full_name(node.func) in MAKES or callees.called_name(node) in ("clone", "detach"))
    return made or (isinstance(node, cst.Attribute) and node.attr.value in VIEWS)


def _apart(loop: _Loop, rows: Rows) -> None:
    """Raises `UsageError` where something else reads what the statements behind the loop set, or they read what all turns change."""
    file, sets = loop.file, set(rows.made) | rows.kept
    wholes = {text for part in _zipped(loop.node) for text in _wholes(file, part)}
    for line in (*_staying(loop), *loop.tail):
        for node in descendants(line, (cst.Name, cst.Attribute)):
            if file.text(node) in wholes and not _by_key(file, node, rows.keys):
                raise refuse(f"{file.location(node)}: `{file.text(node)}` holds what other turns change")
    for line in _staying(loop):
        for name in descendants(line, cst.Name):
            if name.value in sets - rows.own and is_name(file, name):  # type: ignore[attr-defined,arg-type]
                raise refuse(f"{file.location(name)}: `{name.value}` is what the turn before has left")  # type: ignore[attr-defined]
    function = file.function_around(loop.node)
    around = function.body if function is not None else file.module
    tail = [id(each) for line in loop.tail for each in descendants(line, cst.Name)]
    for name in descendants(around, cst.Name):
        told = name.value in sets | rows.turned and is_name(file, name) and id(name) not in tail  # type: ignore[attr-defined,arg-type]
        if told and not file.inside(name, loop.node) and not _begins_anew(file, name):  # type: ignore[arg-type]
            raise refuse(f"{file.location(name)}: `{name.value}` is used outside the loop, too")  # type: ignore[attr-defined]


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


def _begins_anew(file: PythonFile, name: cst.Name) -> bool:
    """Whether `name` stands in a loop or a comprehension of its own that sets it first."""
    own = (clause for up in file.ancestors(name) for clause in clauses(up))
    if any(name.value in _names(clause.target) for clause in own):
        return True
    loop = next((up for up in file.ancestors(name) if isinstance(up, LOOPS)), None)
    if loop is None:
        return False
    first = next(each for each in descendants(loop, cst.Name) if each.value == name.value)  # type: ignore[attr-defined]
    return isinstance(file.parent(first), cst.AssignTarget) or (isinstance(loop, cst.For) and file.inside(first, loop.target))


# Writing --------------------------------------------------------------------------------------------------------------------------


def _written(loop: _Loop, rows: Rows, written: list[str]) -> list[Splice]:
    file, node = loop.file, loop.node
    indent, deeper = file.indent(node), file.module.default_indent
    old = whole_lines(file, *file.span(node))
    lists = _listed(loop, rows) if loop.block is node.body and not loop.stay else None
    first = next(iter(rows.collected.values()))
    written = [f"if {first}:", *(f"{deeper}{row}" for row in written)]
    if lists is not None:
        return [_kept_comments(file, Splice(file.path, old.start, old.end, _text(file, indent, [*lists, *written])))]
    begun = ", ".join(rows.collected.values()) + " = " + ", ".join("[]" for _ in rows.collected)
    inner = file.indent(loop.tail[0])
    start = whole_lines(file, *[_top(file, loop.tail[0])] * 2).start
    appended = [f"{held}.append({text})" for text, held in rows.collected.items()]
    return [
        Splice(file.path, old.start, old.start, _text(file, indent, [begun])),
        _kept_comments(file, Splice(file.path, start, old.end, _text(file, inner, appended) + _text(file, indent, written))),
    ]


def _kept_comments(file: PythonFile, splice: Splice) -> Splice:
    """`splice`. Raises `UsageError` where a comment would go with what it replaces."""
    before = file.raw[splice.start : splice.end].decode("utf-8")
    if before.count("#") > splice.text.count("#"):
        raise refuse(f"{file.path}: a comment stands where its place would be gone")
    return splice


def _top(file: PythonFile, line: cst.CSTNode) -> int:
    """Where `line` begins, with the comments above it."""
    lines = [each for each in getattr(line, "leading_lines", ()) if each.comment is not None]
    return file.span(lines[0].comment)[0] if lines else file.span(line)[0]


def _listed(loop: _Loop, rows: Rows) -> list[str] | None:
    """The lists, where nothing stays in the loop and each is made of one thing that it goes over; None for anything else."""
    file, parts = loop.file, _zipped(loop.node)
    targets = [each.value for each in loop.node.target.elements] if isinstance(loop.node.target, cst.Tuple) else [loop.node.target]
    whole = loop.node.iter
    options = isinstance(whole, cst.Call) and dotted(whole.func) == "zip" and any(arg.keyword is not None for arg in whole.args)
    if len(parts) != len(targets) or options or any(not isinstance(target, cst.Name) for target in targets):
        return None
    if len(parts) > 1 and not all(isinstance(part, cst.Call) and callees.called_name(part) in UNIQUE for part in parts):
        return None  # they may be of different lengths
    around, names = file.function_around(loop.node) or file.module, {target.value for target in targets}  # type: ignore[attr-defined]
    told: list[cst.Name] = [each for each in descendants(around, cst.Name) if each.value in names and is_name(file, each)]  # type: ignore[attr-defined,arg-type,misc]
    if any(not file.inside(each, loop.node) and not _begins_anew(file, each) for each in told):
        return None  # what the last turn leaves is used
    if isinstance(loop.node.body, cst.IndentedBlock) and loop.node.body.header.comment is not None:
        return None
    found: list[str] = []
    for part, target in zip(parts, targets, strict=True):
        name = target.value  # type: ignore[attr-defined]
        if isinstance(part, cst.Call) and callees.called_name(part) not in OF_TENSORS:
            return None
        own = {text: held for text, held in rows.collected.items() if text.split(".")[0] == name}
        source = file.outer_text(part)
        if name in own and len(own) > 1:
            found.append(f"{own[name]} = list({source})")
            source = own.pop(name)
        elif len(own) > 1:
            return None
        found += [f"{held} = list({source})" if text == name else f"{held} = [{text} for {name} in {source}]" for text, held in own.items()]
    return found if len(found) == len(rows.collected) else None


def _text(file: PythonFile, indent: str, rows: list[str]) -> str:
    return "".join(f"{indent}{row}{file.newline}" for row in rows)
