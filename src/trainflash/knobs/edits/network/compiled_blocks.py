"""Regional compilation: the blocks that a network repeats are compiled each by itself, and share what was compiled, instead of the whole.

What differs from step to step, such as a flag of one block, then makes one block anew and no longer the whole network.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.kinds import CompiledBlocks
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers, derived
from trainflash.knobs.reading.expressions import argument_node, given_to, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LISTS = ("torch.nn.ModuleList", "torch.nn.Sequential")
MODULE = "torch.nn.Module"
COMPILE = "torch.compile"
GIVE_THEMSELVES = ("to", "cuda", "cpu", "train", "eval", "float", "double", "half", "bfloat16", "requires_grad_", "apply", "compile")
PREFIX = "_orig_mod"  # of keys in checkpoints of what torch.compile wraps
DEEPEST = 4

Place = tuple[PythonFile, cst.BaseExpression]


def compiled_blocks(edit: CompiledBlocks, scene: Scene) -> tuple[Target, ...]:
    """The one place that compiles the network. Raises `UsageError` where its class, or the blocks that it repeats, are not known."""
    project = scene.project
    found = list(_compiling(project))
    if len(found) != 1:
        places = ", ".join(str(file.location(call)) for file, call, _, _ in found[:4])
        raise refuse(f"networks are compiled at several places: {places}" if found else "no statement compiles a network")
    file, call, network, name = found[0]
    here = file.location(call)
    owner = _class_of(project, (file, network), 0)
    if owner is None:
        raise refuse(f"{here}: the class of `{file.text(network)}` cannot be told")
    blocks = list(dict.fromkeys(_blocks(project, *owner, 0)))
    if not blocks:
        raise refuse(f"{here}: {owner[1].name.value} repeats no block: it holds no list of modules that one expression makes")
    if name is not None and any(PREFIX in each.text(each.module) for each in project.parsed(PREFIX)):
        raise refuse(f"{here}: the program knows the names of what torch.compile wraps ({PREFIX})")
    statement = file.statement(call)
    assert statement is not None
    given = ", ".join(file.text(arg) for arg in (call.args if name is None else call.args[1:])).rstrip(", ")
    inner, outer = file.indent(statement), file.newline
    loops = [f"for block in {name or file.text(network)}.{each}:{outer}{inner}{' ' * 4}block.compile({given})" for each in blocks]
    assigned = [] if name is None or name == file.text(network) else [f"{name} = {file.text(network)}"]
    text = f"{outer}{inner}".join([*assigned, *loops])
    splices = (Splice(file.path, *file.span(statement.body[0]), text),)
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "each block by itself"),)


def _compiling(project: Project) -> Iterator[tuple[PythonFile, cst.Call, cst.BaseExpression, str | None]]:
    """Statements `network.compile(...)`, and `name = torch.compile(network, ...)` with the name; a line of several is none."""
    for file in project.parsed("compile"):
        for call in file.calls:
            statement = file.statement(call)
            small = sole(statement)
            if file.full_name(call.func) == COMPILE:
                network = argument_node(file, call, "model", 0)
                if isinstance(small, cst.Assign) and small.value is call and len(small.targets) == 1 and network is not None:
                    name = dotted(small.targets[0].target)
                    if name is not None and call.args[0].keyword is None:
                        yield file, call, network, name
                        continue
                raise refuse(f"{file.location(call)}: `{file.text(call)}` is no statement of its own that compiles a network")
            alone = isinstance(small, cst.Expr) and small.value is call and dotted(call.func) is not None
            if alone and isinstance(call.func, cst.Attribute) and call.func.attr.value == "compile":
                yield file, call, call.func.value, None


def _class_of(project: Project, place: Place, depth: int) -> tuple[PythonFile, cst.ClassDef] | None:
    """The program's own class that the value of an expression is an instance of; None where that is not known."""
    file, node = place
    if depth > DEEPEST:
        return None
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in GIVE_THEMSELVES:
            return _class_of(project, (file, node.func.value), depth + 1)
        name = (dotted(node.func) or "").split(".")[-1]
        return _only_class(project, name) or _made_by(project, name, depth)
    if isinstance(node, cst.Name):
        return _of_name(project, file, node, depth)
    return _of_attribute(project, file, node, depth) if isinstance(node, cst.Attribute) and dotted(node.value) == "self" else None


def _of_name(project: Project, file: PythonFile, node: cst.Name, depth: int) -> tuple[PythonFile, cst.ClassDef] | None:
    function = file.function_around(node)
    for around in (function, file.module):
        given = [] if around is None else [each for each in given_to(around, node.value) if not _itself(project, file, each, node.value)]
        params = [each for each in function.params.params if each.name.value == node.value] if around is function and function else []
        if given:
            return _class_of(project, (file, given[0]), depth + 1) if len(given) + len(params) == 1 else None
        if params and function is not None:
            handed = callers.only_argument(project, file, function, params[0])
            return None if handed is None else _class_of(project, handed, depth + 1)
    return None


def _of_attribute(project: Project, file: PythonFile, node: cst.Attribute, depth: int) -> tuple[PythonFile, cst.ClassDef] | None:
    owner, name = file.class_around(node), f"self.{node.attr.value}"
    found = [] if owner is None else given_to(owner.body, name)
    found = [each for each in found if not _itself(project, file, each, name)]
    return _class_of(project, (file, found[0]), depth + 1) if len(found) == 1 else None


def _itself(project: Project, file: PythonFile, value: cst.BaseExpression, name: str) -> bool:
    """Whether the value is `name` again: moved, compiled, or given back by a function of the program."""
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute) and value.func.attr.value in GIVE_THEMSELVES and dotted(value.func.value) == name:
        return True
    if not value.args or dotted(value.args[0].value) != name:
        return False
    functions = project.functions((dotted(value.func) or "").split(".")[-1])
    if len(functions) != 1 or not functions[0][1].params.params:
        return file.full_name(value.func) == COMPILE
    _, function = functions[0]
    first = function.params.params[0].name.value
    returned = [dotted(each.value) for each in descendants(function, cst.Return)]  # type: ignore[attr-defined]
    return bool(returned) and set(returned) == {first} and not given_to(function, first)


def _only_class(project: Project, name: str) -> tuple[PythonFile, cst.ClassDef] | None:
    found = [(file, owner) for file, owner in derived.classes(project, (MODULE,)) if owner.name.value == name]
    return found[0] if len(found) == 1 else None


def _made_by(project: Project, name: str, depth: int) -> tuple[PythonFile, cst.ClassDef] | None:
    """The class of what the program's only function of that name returns, where it returns at one place."""
    functions = project.functions(name)
    if len(functions) != 1:
        return None
    file, function = functions[0]
    returned = [each.value for each in descendants(function, cst.Return)]  # type: ignore[attr-defined]
    return _class_of(project, (file, returned[0]), depth + 1) if len(returned) == 1 and returned[0] is not None else None


def _given_to_attributes(owner: cst.ClassDef) -> Iterator[tuple[str, cst.BaseExpression]]:
    for node in descendants(owner.body, cst.Assign):
        for target in node.targets:  # type: ignore[attr-defined]
            if isinstance(target.target, cst.Attribute):
                yield dotted(target.target) or "", node.value  # type: ignore[attr-defined]


def _blocks(project: Project, file: PythonFile, owner: cst.ClassDef, depth: int) -> Iterator[str]:
    """Attributes, with dots, that hold a list of modules which one expression makes; also those of the network's own parts."""
    for target, value in _given_to_attributes(owner):
        name = target.removeprefix("self.")
        if not target.startswith("self.") or "." in name or not isinstance(value, cst.Call):
            continue
        if file.full_name(value.func) in LISTS:
            if len(value.args) == 1 and _repeats(value.args[0].value):
                yield name
        elif depth < DEEPEST and (inner := _only_class(project, (dotted(value.func) or "").split(".")[-1])) is not None:
            yield from (f"{name}.{each}" for each in _blocks(project, *inner, depth + 1))


def _repeats(node: cst.BaseExpression) -> bool:
    """`Block(…) for …`, in a list or as it is, or `Block(…), Block(…), …` of one class."""
    if isinstance(node, (cst.GeneratorExp, cst.ListComp)):
        return isinstance(node.elt, cst.Call)
    if isinstance(node, (cst.List, cst.Tuple)):
        made = {dotted(each.value.func) if isinstance(each.value, cst.Call) else None for each in node.elements}
        return len(node.elements) > 1 and len(made) == 1 and None not in made
    return False
