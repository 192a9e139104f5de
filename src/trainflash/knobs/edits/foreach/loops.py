"""A loop that works on one tensor after another, such as parameters and their averages: operations on lists of all of them.

The statements at the end of a turn that are understood as operations on its tensors go behind the loop, which then only collects them. That
gives the same numbers where turns do not share tensors, draw no random numbers there, and read nothing that such a statement set.
"""

from __future__ import annotations

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
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice, edited

OF_TENSORS = ("parameters", "buffers", "values")
OF_PAIRS = ("named_parameters", "named_buffers", "items")
OF_KEYS = ("keys", "range", "state_dict")
NEVER_EMPTY = ("parameters", "named_parameters")
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
    if any(True for _ in descendants(node.body, (cst.Return, cst.Yield, cst.Await))):
        raise refuse(f"{here}: a turn of the loop may be its last one")
    keys = _keys(file, node)
    spelled, needed = imports.reach(file, "torch", "_foreach_mul_")
    if spelled == "_foreach_mul_":
        raise refuse(f"{here}: torch is not imported as a module")
    torch = spelled.removesuffix("_foreach_mul_")
    around = file.function_around(node)
    taken = frozenset(each.value for each in descendants(around or file.module, cst.Name))  # type: ignore[attr-defined]
    reason: UsageError | None = None
    for loop in _splits(file, node):
        rows = Rows(file, torch, _own(loop), keys, taken, _known(loop), _known_lists(loop))
        try:
            written = rows.of(loop.tail, "")
            _apart(loop, rows)
        except UsageError as bad:
            reason = bad
            continue
        if rows.operations < max(1, rows.loops):
            break
        return (*needed, *_written(loop, rows, written))
    raise reason or refuse(f"{here}: {NOTHING}")


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
        if name in OF_PAIRS or name == "enumerate" or name in OF_KEYS:
            keys |= {first.value} if isinstance(first, cst.Name) and len(parts) == 1 else set()
        elif name not in (None, *OF_TENSORS, "list", "tuple", "reversed", "filter", "chain") or isinstance(
            part, (cst.ListComp, cst.GeneratorExp, cst.List)
        ):
            raise refuse(f"{here}: whether `{file.text(part)}` gives each tensor once is not known")
    return frozenset(keys)


def _zipped(node: cst.For) -> list[cst.BaseExpression]:
    whole = node.iter
    if isinstance(whole, cst.Call) and dotted(whole.func) == "zip":
        return [arg.value for arg in whole.args if arg.keyword is None]
    return [whole]


def _own(loop: _Loop) -> frozenset[str]:
    """Names that each turn sets to something of its own: by the loop's target, and in the statements that stay."""
    found = {each.value for each in descendants(loop.node.target, cst.Name)}  # type: ignore[attr-defined]
    set_at: dict[str, int] = {}
    for line in _staying(loop):
        for node in descendants(line, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)):
            targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]
            plain = isinstance(node, cst.Assign) and loop.file.parent(node) is line
            for target in targets:
                for part, value in _pairs(target, node.value if plain else None):  # type: ignore[attr-defined]
                    if not isinstance(part, cst.Name):
                        continue
                    shared = value is not None and not any(descendants(value, cst.Call)) and not _names(value) & found
                    set_at[part.value] = set_at.get(part.value, 0) + 1
                    found |= {part.value} if not shared or set_at[part.value] > 1 else set()
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
    changed = [each.target for each in descendants(node.body, cst.AugAssign)]  # type: ignore[attr-defined]
    found |= {file.text(each) for each in changed if any(each.deep_equals(target) for target in targets)}  # else it would change nothing
    for line in _staying(loop):
        for assign in descendants(line, cst.Assign):
            if _makes_tensor(file, assign.value) and len(assign.targets) == 1:  # type: ignore[attr-defined]
                found.add(file.text(assign.targets[0].target))  # type: ignore[attr-defined]
    return frozenset(found)


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
    """Raises `UsageError` where something else reads what the statements behind the loop set."""
    file, sets = loop.file, set(rows.made) | rows.kept
    for line in _staying(loop):
        for name in descendants(line, cst.Name):
            if name.value in sets - rows.own and is_name(file, name):  # type: ignore[attr-defined,arg-type]
                raise refuse(f"{file.location(name)}: `{name.value}` is what the turn before has left")  # type: ignore[attr-defined]
    function = file.function_around(loop.node)
    around = function.body if function is not None else file.module
    tail = [id(each) for line in loop.tail for each in descendants(line, cst.Name)]
    for name in descendants(around, cst.Name):
        told = name.value in sets and is_name(file, name) and id(name) not in tail  # type: ignore[attr-defined,arg-type]
        if told and not file.inside(name, loop.node) and not _begins_anew(file, name):  # type: ignore[arg-type]
            raise refuse(f"{file.location(name)}: `{name.value}` is used outside the loop, too")  # type: ignore[attr-defined]


def _begins_anew(file: PythonFile, name: cst.Name) -> bool:
    """Whether `name` stands in a loop of its own that sets it first."""
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
    if lists is None or not all(callees.called_name(part) in NEVER_EMPTY for part in _zipped(node) if isinstance(part, cst.Call)):
        written = [f"if {first}:", *(f"{deeper}{row}" for row in written)]
    if lists is not None:
        return [Splice(file.path, old.start, old.end, _text(file, indent, [*lists, *written]))]
    begun = ", ".join(rows.collected.values()) + " = " + ", ".join("[]" for _ in rows.collected)
    inner = file.indent(loop.tail[0])
    start = whole_lines(file, *[_top(file, loop.tail[0])] * 2).start
    appended = [f"{held}.append({text})" for text, held in rows.collected.items()]
    return [
        Splice(file.path, old.start, old.start, _text(file, indent, [begun])),
        Splice(file.path, start, old.end, _text(file, inner, appended) + _text(file, indent, written)),
    ]


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
    found: list[str] = []
    for part, target in zip(parts, targets, strict=True):
        name = target.value  # type: ignore[attr-defined]
        if isinstance(part, cst.Call) and callees.called_name(part) not in OF_TENSORS:
            return None
        own = {text: held for text, held in rows.collected.items() if text.split(".")[0] == name}
        source = file.text(part)
        if name in own and len(own) > 1:
            found.append(f"{own[name]} = list({source})")
            source = own.pop(name)
        elif len(own) > 1:
            return None
        found += [f"{held} = list({source})" if text == name else f"{held} = [{text} for {name} in {source}]" for text, held in own.items()]
    return found if len(found) == len(rows.collected) else None


def _text(file: PythonFile, indent: str, rows: list[str]) -> str:
    return "".join(f"{indent}{row}{file.newline}" for row in rows)
