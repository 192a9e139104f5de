"""What a loop over tensors does in each turn: which statements stay in it, which names they set, and what is a tensor there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from trainflash.knobs.edits.foreach.operations import ALONE, VIEWS, WITH_ONE, WITH_TWO
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, clauses, descendants, dotted, sole, targets_of

OF_TENSORS = ("parameters", "buffers", "values")
FILLS = ("append", "extend", "insert", "update", "setdefault", "pop", "clear")
MAKES = tuple(f"torch.{name}" for name in ("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "clone"))


@dataclass(frozen=True)
class Turns:
    """A loop, the block whose last statements work on tensors, and the number of statements in it that stay."""

    file: PythonFile
    node: cst.For
    block: cst.IndentedBlock
    stay: int

    @property
    def tail(self) -> Sequence[cst.CSTNode]:
        return self.block.body[self.stay :]

    @cached_property
    def staying(self) -> list[cst.CSTNode]:
        """Statements of a turn that stay in the loop, and conditions around the others."""
        found: list[cst.CSTNode] = list(self.block.body[: self.stay])
        up = self.file.parent(self.block)
        while isinstance(up, cst.If):
            found.append(up.test)
            outer = self.file.parent(up)
            assert isinstance(outer, cst.IndentedBlock)
            found += outer.body[:-1]
            up = self.file.parent(outer)
        return found


def splits(file: PythonFile, node: cst.For) -> Iterator[Turns]:
    """All ways to split the turns, the longest part for lists first; a name that is only given a part of the turn's stays in the loop."""
    block = node.body
    assert isinstance(block, cst.IndentedBlock)
    while True:
        for stay in range(len(block.body)):
            if not _alias(block.body[stay]):
                yield Turns(file, node, block, stay)
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


def zipped(node: cst.For) -> list[cst.BaseExpression]:
    whole = node.iter
    if isinstance(whole, cst.Call) and dotted(whole.func) == "zip":
        return [arg.value for arg in whole.args if arg.keyword is None]
    return [whole]


def own_names(loop: Turns) -> frozenset[str]:
    """Names that each turn sets to something of its own: by the loop's target, and in the statements that stay."""
    found = {each.value for each in descendants(loop.node.target, cst.Name)}  # type: ignore[attr-defined]
    set_at: dict[str, int] = {}
    set_in_loop = {
        name
        for node in descendants(loop.node.body, (cst.Assign, cst.AugAssign))
        for target in targets_of(node)
        if not (isinstance(node, cst.Assign) and _plain_once(loop, node))
        for name in names_in(target)
    }
    for line in loop.staying:
        found |= {name for node in descendants(line, (cst.AsName, cst.Import, cst.ImportFrom)) for name in names_in(node)}
        for node in descendants(line, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)):
            plain = isinstance(node, cst.Assign) and loop.file.parent(node) is line
            for target in targets_of(node):
                for part, value in _pairs(target, node.value if plain else None):  # type: ignore[attr-defined]
                    if not isinstance(part, cst.Name):
                        continue
                    read = names_in(value) if value is not None else set()
                    shared = value is not None and not any(descendants(value, cst.Call)) and not read & (found | set_in_loop)
                    set_at[part.value] = set_at.get(part.value, 0) + 1
                    found |= {part.value} if not shared or set_at[part.value] > 1 else set()
    return frozenset(found)


def _plain_once(loop: Turns, node: cst.Assign) -> bool:
    """Whether what a turn assigns does not read what it is assigned to, such as `lr = group["lr"]` and unlike `lr = lr * 0.9`."""
    names = {name for target in targets_of(node) for name in names_in(target)}
    return not names & names_in(node.value)


def set_in_front(loop: Turns) -> frozenset[str]:
    """Words of the attributes and keys that the staying part of a turn sets or calls methods of."""
    found: set[str] = set()
    for line in loop.staying:
        for node in descendants(line, ASSIGNS):
            for target in targets_of(node):
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


def names_in(node: cst.CSTNode) -> set[str]:
    return {each.value for each in descendants(node, cst.Name)}  # type: ignore[attr-defined]


def known_tensors(loop: Turns, lists: frozenset[str]) -> frozenset[str]:
    """Source of what is a tensor in each turn, as the source says; `lists` hold nothing else."""
    file, node = loop.file, loop.node
    found = set(receivers(file, node.body))
    targets = [each.value for each in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
    parts = zipped(node)
    for part, target in zip(parts, targets, strict=False):
        if (isinstance(part, cst.Call) and callees.called_name(part) in OF_TENSORS) or file.text(part) in lists:
            found.add(file.text(target))
    if len(parts) == 1 and isinstance(parts[0], cst.Call) and callees.called_name(parts[0]) in ("named_parameters", "named_buffers"):
        found |= {file.text(target) for target in targets[1:]}
    found |= {file.text(each) for each in targets if isinstance(each, cst.Name) and _only_changed(file, node, each.value)}
    for line in loop.staying:
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


def known_lists(file: PythonFile, node: cst.For) -> frozenset[str]:
    """What is given gradients or a list of parameters in the function around the loop, and what only holds tensors that are made for it."""
    around = file.function_around(node) or file.module
    found = {text for text in _asked_by_key(file, node) if _made_of_tensors(file, node, text)}
    for assign in descendants(around, cst.Assign):
        value = assign.value.args[0].value if _is_call_of(assign.value, "list", "tuple") and assign.value.args else assign.value  # type: ignore[attr-defined]
        gradients = isinstance(value, cst.Call) and (file.full_name(value.func) or "").endswith("autograd.grad")
        if gradients or _is_call_of(value, *OF_TENSORS):
            found |= {file.text(target.target) for target in assign.targets}  # type: ignore[attr-defined]
    return frozenset(found)


def _asked_by_key(file: PythonFile, node: cst.For) -> set[str]:
    """Source of what the loop reads by a key, such as `self.m` of `self.m[i]`."""
    read = {dotted(each.value) for each in descendants(node.body, cst.Subscript)}  # type: ignore[attr-defined]
    return {name for name in read if name is not None}


def _made_of_tensors(file: PythonFile, node: cst.For, name: str) -> bool:
    """Whether all that the program gives `name`, there or in the class, are lists or dictionaries of tensors made one by one, and nothing
    else is put into them, or has them by another name."""
    kinds = cst.ClassDef if name.startswith("self.") else (cst.FunctionDef, cst.Module)
    owners = (up for up in (*file.ancestors(node), file.module) if isinstance(up, kinds))
    owner, values = next(((each, found) for each in owners if (found := given_to(each, name))), (file.module, []))
    filled = any(
        isinstance(call.func, cst.Attribute) and dotted(call.func.value) == name and call.func.attr.value in FILLS  # type: ignore[attr-defined]
        for call in descendants(owner, cst.Call)
    )
    for other in descendants(owner, (cst.Assign, cst.AugAssign)):
        entry = any(isinstance(target, cst.Subscript) and dotted(target.value) == name for target in targets_of(other))
        if dotted(other.value) == name or (entry and not file.inside(other, node)):  # type: ignore[attr-defined]
            return False
    return bool(values) and not filled and all(_lists_tensors(file, value) for value in values)


def _lists_tensors(file: PythonFile, value: cst.BaseExpression) -> bool:
    if not isinstance(value, (cst.ListComp, cst.DictComp)):
        return False
    made = value.value if isinstance(value, cst.DictComp) else value.elt
    own = {name for clause in clauses(value) for name in names_in(clause.target)}
    return _makes_tensor(file, made) and bool(names_in(made) & own)  # each of its own, not one for all


def _is_call_of(node: cst.BaseExpression, *names: str) -> bool:
    return isinstance(node, cst.Call) and callees.called_name(node) in names


def _makes_tensor(file: PythonFile, node: cst.BaseExpression) -> bool:
    made = isinstance(node, cst.Call) and (file.full_name(node.func) in MAKES or callees.called_name(node) in ("clone", "detach"))
    return made or (isinstance(node, cst.Attribute) and node.attr.value in VIEWS)


def receivers(file: PythonFile, body: cst.CSTNode) -> frozenset[str]:
    """Source of what operations of tensors are called on in `body`: it is a tensor."""
    found = set()
    for call in descendants(body, cst.Call):
        if isinstance(call.func, cst.Attribute):  # type: ignore[attr-defined]
            name = call.func.attr.value.removesuffix("_")  # type: ignore[attr-defined]
            if name in ALONE | WITH_ONE | WITH_TWO | {"copy", "zero", "detach", "norm", "clone"} and name not in ("round", "log", "copy"):
                found.add(file.text(call.func.value))  # type: ignore[attr-defined]
    return frozenset(found)
