"""Regional compilation: the blocks that a network repeats are compiled each by itself, and share what was compiled, instead of the whole.

What differs from step to step, such as a flag of one block, then makes one block anew and no longer the whole network.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.kinds import CompiledBlocks
from trainflash.knobs.project import Project
from trainflash.knobs.reading import own_classes
from trainflash.knobs.reading.expressions import argument_node, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

SEQUENTIAL = "torch.nn.Sequential"
LISTS = ("torch.nn.ModuleList", SEQUENTIAL)
HOLDS = ("torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict")  # they cannot be called
PREFIX = "_orig_mod"  # of keys in checkpoints of what torch.compile wraps
DEEPEST = 4


def compiled_blocks(edit: CompiledBlocks, scene: Scene) -> tuple[Target, ...]:
    """The one place that compiles the network. Raises `UsageError` where its class, or the blocks that it repeats, are not known."""
    project = scene.project
    found = list(_compiling(project))
    if len(found) != 1:
        places = ", ".join(str(file.location(call)) for file, call, _, _ in found[:4])
        raise refuse(f"networks are compiled at several places: {places}" if found else "no statement compiles a network")
    file, call, network, name = found[0]
    here = file.location(call)
    owner = own_classes.class_of(project, (file, network))
    if owner is None:
        raise refuse(f"{here}: the class of `{file.text(network)}` cannot be told")
    blocks = list(dict.fromkeys(_blocks(project, *owner, 0)))
    if not blocks:
        raise refuse(
            f"{here}: {owner[1].name.value} repeats no block: it holds no list of modules that one expression makes and that are called"
        )
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
            if file.full_name(call.func) == own_classes.COMPILE:
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
            by_itself = file.full_name(value.func) == SEQUENTIAL or _is_called(file, owner, name)
            if len(value.args) == 1 and by_itself and _repeats(project, file, value.args[0].value):
                yield name
        elif depth < DEEPEST and (inner := own_classes.only(project, (dotted(value.func) or "").split(".")[-1])) is not None:
            yield from (f"{name}.{each}" for each in _blocks(project, *inner, depth + 1))


def _repeats(project: Project, file: PythonFile, node: cst.BaseExpression) -> bool:
    """`Block(…) for …`, in a list or as it is, or `Block(…), Block(…), …` of one class; of blocks that can be called."""
    if isinstance(node, (cst.GeneratorExp, cst.ListComp)):
        return isinstance(node.elt, cst.Call) and _runs(project, file, node.elt)
    if isinstance(node, (cst.List, cst.Tuple)):
        made = [each.value for each in node.elements if isinstance(each.value, cst.Call)]
        alike = len({dotted(each.func) for each in made} - {None}) == 1 and all(dotted(each.func) is not None for each in made)
        return len(made) == len(node.elements) > 1 and alike and _runs(project, file, made[0])
    return False


def _runs(project: Project, file: PythonFile, block: cst.Call) -> bool:
    """Whether what a list holds is something that is called: a list in it is not, nor a class without `forward`."""
    if file.full_name(block.func) in HOLDS:
        return False
    found = own_classes.only(project, (dotted(block.func) or "").split(".")[-1])
    return (
        found is None
        or bool(own_classes.methods(project, *found, ("forward", "__call__")))
        or own_classes.of_others(project, *found) != {"Module"}
    )


def _is_called(file: PythonFile, owner: cst.ClassDef, name: str) -> bool:
    """Whether the blocks under `self.name` are called, or handed on: not where all that its class does is to call other methods of them."""
    each = set()
    for loop in descendants(owner.body, (cst.For, cst.CompFor)):
        if any(dotted(node) == f"self.{name}" for node in descendants(loop.iter, cst.Attribute)):  # type: ignore[attr-defined]
            counted = isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "enumerate"  # type: ignore[attr-defined]
            target = loop.target.elements[-1] if counted and isinstance(loop.target, cst.Tuple) else loop.target  # type: ignore[attr-defined]
            each |= {node.value for node in descendants(target, cst.Name)}  # type: ignore[attr-defined]
    uses = [
        node
        for node in descendants(owner.body, cst.BaseExpression)
        if (isinstance(node, cst.Name) and node.value in each) or (isinstance(node, cst.Subscript) and dotted(node.value) == f"self.{name}")
    ]
    methods = [node for node in uses if isinstance(up := file.parent(node), cst.Attribute) and up.value is node and _called(file, up)]
    bare = [node for node in uses if not isinstance(file.parent(node), (cst.Attribute, cst.For, cst.CompFor, cst.Element))]
    return bool(bare) or not methods


def _called(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return isinstance(up, cst.Call) and up.func is node
