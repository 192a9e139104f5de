"""What counts the steps where a statement stands: a loop's own number, a count that is kept, or what a trainer hands its callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, is_name, literal
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, has_slots, keyword, sole
from trainflash.knobs.splices import Splice

NAMES = ("step", "global_step", "iteration", "n_iter", "batch_idx", "batch_index", "step_idx", "it", "i_step")  # parameters that are counts
NEW = "step"  # own: what a loop without a number gets
SHOWN_BY = {"tqdm", "track", "trange", "progress"}  # what shows a loop's progress hands on what it is given
COUNTS = ("calls", "turns", "times_asked")  # own: names of a count that an object gets; the first that the program does not use
NO_COUNT = {"Module", "LightningModule", "NamedTuple", "Enum", "Protocol", "Function"}
SHRINKS = {"clear", "pop", "popleft", "remove"}
LIGHTNING = ("lightning", "pytorch_lightning")


@dataclass(frozen=True)
class Counter:
    """`text` reads it; `first` is its value in the first step, None where unknown; `needed` is written for it to be there.

    `before` is a statement that counts, where nothing does so yet: in front of the one that asks.
    """

    text: str
    first: int | None = None
    needed: tuple[Splice, ...] = ()
    before: str = ""


def in_loop(file: PythonFile, loop: cst.For | cst.While, statement: cst.CSTNode) -> Counter | None:
    """What counts the rounds of `loop` at `statement` in its body; a number is given to a `for` that has none."""
    numbered = _numbered(loop) if isinstance(loop, cst.For) else None
    return numbered or kept(file, loop.body, statement) or (_enumerated(file, loop) if isinstance(loop, cst.For) else None)


def in_function(project: Project, file: PythonFile, function: cst.FunctionDef, statement: cst.CSTNode) -> Counter | None:
    """What a function that runs in every step can read its number from."""
    params = [param.name.value for param in descendants(function.params, cst.Param)]
    handed = next((name for name in NAMES if name in params), None)
    if handed is not None:
        return Counter(handed, 0 if handed == "batch_idx" else None)
    if {"state", "control"} <= set(params):
        return Counter("state.global_step")  # a callback of transformers
    return (
        _attribute(project, file, function, params)
        or _of_lightning(file, function, params)
        or _list(file, function, statement)
        or _new(project, file, function, params)
    )


def _behind_a_bar(node: cst.BaseExpression) -> cst.BaseExpression:
    """What a bar of progress goes through, or the node itself."""
    while isinstance(node, cst.Call) and callees.called_name(node) in SHOWN_BY - {"trange"} and node.args:
        node = node.args[0].value
    return node


def _numbered(loop: cst.For) -> Counter | None:
    """`for step in range(…)`, `for step, x in enumerate(…)` and the same with `zip(range(…), …)`, behind a bar of progress or not."""
    call = _behind_a_bar(loop.iter)
    if not isinstance(call, cst.Call):
        return None
    name = callees.called_name(call)
    if name in ("range", "trange") and isinstance(loop.target, cst.Name) and len(call.args) < 3:
        given = [arg for arg in call.args if arg.keyword is None]
        return Counter(loop.target.value, _whole(given[0].value) if len(given) == 2 else 0)
    if name == "zip" and isinstance(loop.target, cst.Tuple) and call.args and isinstance(call.args[0].value, cst.Call):
        return _numbered(loop.with_changes(target=loop.target.elements[0].value, iter=call.args[0].value))
    if name == "enumerate" and isinstance(loop.target, cst.Tuple) and isinstance(loop.target.elements[0].value, cst.Name):
        start = keyword(call, "start") or (call.args[1] if len(call.args) > 1 else None)
        return Counter(loop.target.elements[0].value.value, _whole(start.value) if start is not None else 0)
    return None


def ends(loop: cst.For) -> tuple[cst.BaseExpression, int] | None:
    """Where `for step in range(…)` ends, that number not included, and where it begins, behind a bar of progress or not."""
    call = _behind_a_bar(loop.iter)
    if not isinstance(call, cst.Call) or callees.called_name(call) not in ("range", "trange"):
        return None
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    first = 0 if len(given) == 1 else _whole(given[0]) if len(given) == 2 else None
    return None if first is None else (given[-1], first)


def kept(file: PythonFile, block: cst.BaseSuite, statement: cst.CSTNode) -> Counter | None:
    """`step += 1` straight in the block of `statement`."""
    for line in block.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if _adds_one(small):
                assert isinstance(small, cst.AugAssign)
                name = dotted(small.target)
                if name is None:
                    continue
                begun = [_whole(each) for each in given_to(file.module, name)]
                before = file.span(small)[0] < file.span(statement)[0]
                first = begun[0] + before if len(begun) == 1 and begun[0] is not None else None
                return Counter(name, first)
    return None


def _enumerated(file: PythonFile, loop: cst.For) -> Counter | None:
    """`for batch in loader` becomes `for step, batch in enumerate(loader)` where nothing is called `step` yet."""
    around = file.function_around(loop) or file.module
    if loop.asynchronous is not None or any(name.value == NEW and is_name(file, name) for name in descendants(around, cst.Name)):
        return None
    start, end = file.outer_span(loop.target)
    bare = isinstance(loop.target, cst.Tuple) and not loop.target.lpar
    left, right = ("(", ")") if bare else ("", "")
    target = Splice(file.path, start, start, f"{NEW}, {left}")
    closed = (Splice(file.path, end, end, right),) if right else ()
    first, last = file.outer_span(loop.iter)
    return Counter(NEW, 0, (target, *closed, Splice(file.path, first, first, "enumerate("), Splice(file.path, last, last, ")")))


def _attribute(project: Project, file: PythonFile, function: cst.FunctionDef, params: list[str]) -> Counter | None:
    """`trainer.step` where the program adds one to an attribute of that name, and the file, or the class, reads it of what is so called."""
    owner, counted = file.class_of(function), _counted(project)
    for node in file.nodes:
        name = dotted(node) if isinstance(node, cst.Attribute) else None
        first = name.split(".")[0] if name is not None else ""
        known = first in params if first != "self" else owner is not None and file.inside(node, owner)
        if known and node.attr.value in counted:  # type: ignore[union-attr]
            return Counter(name)  # type: ignore[arg-type]
    return None


def _list(file: PythonFile, function: cst.FunctionDef, statement: cst.CSTNode) -> Counter | None:
    """The length of a list of the object's that grows by one in front of `statement`, and never shrinks."""
    owner = file.class_of(function)
    for line in function.body.body:
        if line is statement:
            return None
        small = sole(line)
        call = small.value if isinstance(small, cst.Expr) else None
        base = dotted(call.func.value) if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) else None
        if owner is None or base is None or not base.startswith("self.") or call.func.attr.value != "append":  # type: ignore[union-attr]
            continue
        others = {call.func.attr.value for call in descendants(owner, cst.Call) if _method_of(call, base)}  # type: ignore[attr-defined]
        cut = any(isinstance(up, cst.Del) and base in file.text(up) for up in descendants(owner, cst.Del))
        if len(given_to(owner, base)) == 1 and not others & SHRINKS and not cut:
            return Counter(f"len({base})", 1)
    return None


def _new(project: Project, file: PythonFile, function: cst.FunctionDef, params: list[str]) -> Counter | None:
    """An attribute of the object's own, which begins as one of the class and is counted up here: not of a network, which is compiled."""
    owner = file.class_of(function)
    if owner is None or params[:1] != ["self"] or not isinstance(owner.body, cst.IndentedBlock) or _is_bare(file, owner):
        return None
    name = next((each for each in COUNTS if not _is_used(project, each)), None)
    if name is None:
        return None
    first = owner.body.body[0]
    documented = isinstance(small := sole(first), cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
    header = [owner.name, *owner.bases, *owner.keywords]
    end = file.span(first)[1] if documented else file.raw.index(b":", file.span(header[-1])[1])
    at = file.raw.index(b"\n", end) + 1
    indent = file.indent(first)
    left, right = (file.newline, "") if documented else ("", file.newline)
    made = Splice(file.path, at, at, f"{left}{indent}{name} = 0{file.newline}{right}")
    return Counter(f"self.{name}", 1, (made,), f"self.{name} += 1")


def _is_used(project: Project, name: str) -> bool:
    return any(node.value == name for where in project.parsed(name) for node in where.each(cst.Name))


def _is_bare(file: PythonFile, owner: cst.ClassDef) -> bool:
    """Whether objects of the class cannot be given a number, or are no objects of the program's own."""
    frozen = any("frozen" in file.text(each) for each in owner.decorators)
    return frozen or has_slots(file, owner) or bool(base_names(owner) & NO_COUNT)


def _method_of(call: cst.CSTNode, base: str) -> bool:
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and dotted(call.func.value) == base


def _counted(project: Project) -> set[str]:
    """Attributes that the program adds one to; epochs are no steps."""
    added = (name for where in project.parsed("+") for node in where.nodes for name in _one_more(node))
    return {last for _, dot, last in (name.rpartition(".") for name in added) if dot and "epoch" not in last}


def _of_lightning(file: PythonFile, function: cst.FunctionDef, params: list[str]) -> Counter | None:
    if not any(full.split(".")[0] in LIGHTNING for full in file.imported.values()):
        return None
    if "trainer" in params:
        return Counter("trainer.global_step")
    return Counter("self.global_step") if "LightningModule" in base_names(file.class_of(function)) else None


def _one_more(node: cst.CSTNode) -> Iterator[str]:
    """What an assignment adds one to: `x += 1`, `x = x + 1`, also as one of several targets."""
    if _adds_one(node):
        yield dotted(node.target) or ""  # type: ignore[attr-defined]
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return
    target, value = node.targets[0].target, node.value
    several = isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple) and len(target.elements) == len(value.elements)
    pairs = [(a.value, b.value) for a, b in zip(target.elements, value.elements, strict=True)] if several else [(target, value)]  # type: ignore[attr-defined]
    for part, given in pairs:
        one = isinstance(given, cst.BinaryOperation) and isinstance(given.operator, cst.Add) and literal(given.right) == 1
        if one and dotted(part) is not None and dotted(part) == dotted(given.left):
            yield dotted(part) or ""


def _adds_one(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign) and literal(node.value) == 1


def _whole(node: cst.BaseExpression) -> int | None:
    value = literal(node)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
