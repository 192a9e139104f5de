"""Parts of a network that take turns: a forward that uses some of them in one step and others in another."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, elements_of, methods_of, targets_of

BARE = re.compile(
    r"(.*Loss|.*Dropout.*|\w*ReLU\w*|GELU|SiLU|Tanh|Sigmoid|Softmax|LogSoftmax|Identity|Flatten|\w+Pool\dd|Upsample|\w+Pad\dd)$"
)
MAKES = ("__init__", "__post_init__")
CHOICES = (cst.If, cst.IfExp, cst.BooleanOperation, cst.Match)


def none(project: Project) -> None:
    """Raises `UsageError` where the source shows a forward that may not use the same parts in each step."""
    for file, function in callees.forwards(project):
        owner = file.class_of(function)
        parts = _parts(owner) if owner is not None else set()
        for each in (function, *_methods(owner, function)):
            for node in descendants(each.body, (*CHOICES, cst.Subscript)):
                if _takes_turns(project, file, node, parts):
                    raise refuse(f"{file.location(node)}: `{short(file.text(node))}` may use other parts of the network in another step")


def _parts(owner: cst.ClassDef) -> set[str]:
    """Attributes of a network that constructors give an object to."""
    made: set[str] = set()
    for line in descendants(owner.body, (cst.Assign, cst.AnnAssign)):
        values = [line.value, *((each.value for each in line.value.elements) if isinstance(line.value, (cst.Tuple, cst.List)) else ())]  # type: ignore[attr-defined]
        if not any(isinstance(value, (cst.Call, cst.IfExp, cst.ListComp, cst.List)) and not _bare(value) for value in values):
            continue
        for target in targets_of(line):
            made |= {name.removeprefix("self.") for each in elements_of(target) if (name := dotted(each) or "").startswith("self.")}
    return made


def _bare(value: cst.BaseExpression) -> bool:
    """Whether a layer has no parameters, by its name."""
    return isinstance(value, cst.Call) and BARE.match((dotted(value.func) or "").split(".")[-1]) is not None


def _methods(owner: cst.ClassDef | None, forward: cst.FunctionDef) -> list[cst.FunctionDef]:
    """Other methods of the network that its forward calls, however deep."""
    known = {each.name.value: each for each in methods_of(owner)} if owner is not None else {}
    found: list[cst.FunctionDef] = []
    todo = [forward]
    while todo:
        for call in descendants(todo.pop().body, cst.Call):
            name = (dotted(call.func) or "").removeprefix("self.")  # type: ignore[attr-defined]
            other = known.get(name)
            if other is not None and other is not forward and all(other is not each for each in found):
                found.append(other)
                todo.append(other)
    return found


def _takes_turns(project: Project, file: PythonFile, node: cst.CSTNode, parts: set[str]) -> bool:
    """Whether one way or the other uses parts that the other way does not, and which way is taken is no setting."""
    if isinstance(node, cst.Subscript):
        picked = (dotted(node.value) or "").removeprefix("self.")
        return picked in parts and isinstance(file.parent(node), cst.Call) and file.parent(node).func is node and _varies(file, node)  # type: ignore[union-attr]
    test = node.left if isinstance(node, cst.BooleanOperation) else getattr(node, "subject", None) or node.test  # type: ignore[attr-defined]
    if _setting(project, test):
        return False
    if isinstance(node, cst.If) and (leaves := _leaves(node)):
        behind = [name for loop in list(file.loops_around(node))[:1] for name in _used(loop, parts)]
        return bool(behind) or (any(isinstance(each, cst.Return) for each in leaves) and bool(_used_behind(file, node, parts)))
    ways: list[cst.CSTNode | None]
    if isinstance(node, cst.Match):
        ways = [*node.cases]
    elif isinstance(node, cst.BooleanOperation):
        ways = [node.right, None]
    else:
        ways = [node.body, node.orelse]  # type: ignore[attr-defined]
    used = [_used(way, parts) for way in ways]
    return any(each != used[0] for each in used)


def _used(where: cst.CSTNode | None, parts: set[str]) -> set[str]:
    """The parts that `where` names."""
    if where is None:
        return set()
    named = ((dotted(node) or "").split(".") for node in descendants(where, cst.Attribute))
    return {name[1] for name in named if name[0] == "self" and len(name) > 1 and name[1] in parts}


def _used_behind(file: PythonFile, node: cst.CSTNode, parts: set[str]) -> set[str]:
    function = file.function_around(node)
    lines = [] if function is None else [line for line in function.body.body if file.span(line)[0] > file.span(node)[1]]
    return {name for line in lines for name in _used(line, parts)}


def _leaves(node: cst.If) -> list[cst.CSTNode]:
    """What ends a turn of the loop or the function early."""
    return list(descendants(node.body, (cst.Continue, cst.Break, cst.Return)))


def _setting(project: Project, test: cst.BaseExpression) -> bool:
    """Whether a condition asks only how the network was made: its own fields that nobody sets later, and literals."""
    names = [node.value for node in descendants(test, cst.Name)]
    calls = [dotted(call.func) for call in descendants(test, cst.Call)]  # type: ignore[attr-defined]
    own = [node for node in descendants(test, cst.Attribute) if (dotted(node) or "").startswith("self.")]
    attributes = {node.attr.value for node in descendants(test, cst.Attribute)}  # type: ignore[attr-defined]
    others = [
        name for name in names if name not in attributes and name not in ("self", "None", "True", "False", "hasattr", "isinstance", "len")
    ]
    asked = bool(own) and not others and all(name in ("hasattr", "isinstance", "len") for name in calls)
    return asked and not any(_set_later(project, name) for name in attributes)


def _set_later(project: Project, name: str) -> bool:
    """Whether a field of that name is given a value other than where objects are made."""
    for file in project.parsed(name):
        for node in file.nodes:
            targets = targets_of(node) if isinstance(node, ASSIGNS) else []
            around = file.function_around(node) if targets else None
            made = around is not None and around.name.value in MAKES
            if not made and any(isinstance(each, cst.Attribute) and each.attr.value == name for each in targets):
                return True
    return False


def _varies(file: PythonFile, node: cst.Subscript) -> bool:
    """Whether what is picked is neither written out nor counted by a loop around it."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if not isinstance(index, cst.Index):
        return False
    value = index.value
    counted = {
        name.value
        for loop in [up for up in file.ancestors(node) if isinstance(up, (cst.For, cst.ListComp, cst.GeneratorExp))]
        for target in ([loop.target] if isinstance(loop, cst.For) else [loop.for_in.target])
        for name in descendants(target, cst.Name)
    }  # type: ignore[attr-defined]
    fixed = isinstance(literal(value), (int, str)) or (dotted(value) or "").startswith("self.")
    return not fixed and not {each.value for each in descendants(value, cst.Name)} <= counted  # type: ignore[attr-defined]
