"""Move work that never changes out of a loop."""

from __future__ import annotations

import builtins
from typing import Any

import libcst as cst

from trainflash.knobs.edits.calls import insertion
from trainflash.knobs.edits.statements import whole_lines
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import changes, purity, sharing, writers
from trainflash.knobs.kinds import CallArgument, Hoist
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import assigned, is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, sole, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import loading, worker_state
from trainflash.schema import Location

LOADER = CallArgument(loading.LOADERS, "num_workers", at="loader")
MAKES = (
    "arange",
    "zeros",
    "ones",
    "full",
    "eye",
    "tril",
    "triu",
    "linspace",
    "tensor",
    "as_tensor",
    "meshgrid",
    "from_numpy",
    "stack",
    "cat",
)
CHANGES = purity.CHANGES | {"fill", "sort", "resize", "put"}


def hoist(edit: Hoist, scene: Scene) -> tuple[Target, ...]:
    """The assignment, and the loop in front of which it can stand. Raises `UsageError` where something in the loop may change it."""
    if edit.what == "loader":
        file, call = the_call(LOADER, scene)
        node: cst.CSTNode = call
    else:
        file, node = _work(scene, *scene.source("does the work"))
    assign = sole(line := file.statement(node))
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1 or not isinstance(assign.targets[0].target, cst.Name):
        raise refuse(f"{file.location(node)}: is no assignment of its own to a plain name")
    loop = next(file.loops_around(line), None)  # type: ignore[arg-type]
    if loop is None or file.parent(line) is not loop.body:  # type: ignore[arg-type]
        raise refuse(f"{file.location(node)}: does not stand in a loop's own block")
    name = assign.targets[0].target
    _invariant(scene, file, assign, name, loop, pure=edit.what == "pure")
    _untouched(scene, file, assign, name, loop, loader=edit.what == "loader")
    text = file.text(assign)
    if edit.what == "loader":
        text = _kept(scene, file, node, assign, text)  # type: ignore[arg-type]
    if "\n" in text and any(isinstance(each, cst.SimpleString) and "\n" in each.value for each in descendants(assign, cst.SimpleString)):
        raise refuse(f"{file.location(node)}: a text of several lines would be moved")
    start = file.span(loop)[0]
    indent = file.indent(loop)
    text = text.replace(f"\n{file.indent(assign)}", f"\n{indent}")
    alone = len(loop.body.body) == 1
    gone = Splice(file.path, *file.span(assign), "pass") if alone else whole_lines(file, *file.span(assign))
    splices = (Splice(file.path, start, start, f"{text}{file.newline}{indent}"), gone)
    here = file.location(assign)
    where = f"`{name.value}` at {here}, in front of the loop at line {file.lines_of(loop)[0]}"
    return (Target(here, None, lambda value: splices, where, f"{name.value} before the loop"),)


def _work(scene: Scene, file: PythonFile, place: Location) -> tuple[PythonFile, cst.CSTNode]:
    """The assignment at the place; where a function does the work, the one assignment in a loop that calls it."""
    for node in file.nodes:
        if isinstance(node, cst.Assign) and file.lines_of(node)[0] <= place.line <= file.lines_of(node)[1] and any(file.loops_around(node)):
            return file, node.value
    function = file.function_at(place)
    sites = callers.sites(scene.project, file, function) if function is not None else []
    inside = [(where, call) for where, call in sites if any(where.loops_around(call))]
    if len(inside) != 1:
        raise refuse(f"{place}: {'no' if not inside else 'more than one'} call of it stands in a loop")
    return inside[0]


def _invariant(scene: Scene, file: PythonFile, assign: cst.Assign, name: cst.Name, loop: Any, *, pure: bool) -> None:
    """Nothing in the loop sets what the value is made of, and nothing changes the value itself."""
    own = {id(node) for node in descendants(assign, cst.CSTNode)}
    needed = {node.value for node in descendants(assign.value, cst.Name) if is_name(file, node)}
    if name.value in needed:
        raise refuse(f"{file.location(assign)}: {name.value} is made of its own former value")
    for node in descendants(loop, cst.CSTNode):
        if id(node) in own:
            continue
        for target in targets_of(node) if not isinstance(node, cst.CompFor) else ():  # a comprehension's names are its own
            base = target
            while isinstance(base, (cst.Attribute, cst.Subscript)):
                base = base.value
            words = {each.value for each in descendants(base, cst.Name)}
            if words & needed or name.value in words:
                raise refuse(f"{file.location(node)}: `{file.text(target)}` is set in the loop")
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            base, tail = dotted(node.func.value) or "", node.func.attr.value
            touched = base.split(".")[0] in {*needed, name.value}
            if touched and (tail in CHANGES or (tail.endswith("_") and not tail.startswith("__")) or tail.startswith("set_")):
                raise refuse(f"{file.location(node)}: `{base}.{tail}` changes it in the loop")
    for call in descendants(assign.value, cst.Call):
        reason = _impure(scene, file, call) if pure else None
        if reason is not None:
            raise refuse(f"{file.location(call)}: {reason}")


def _untouched(scene: Scene, file: PythonFile, assign: cst.Assign, name: cst.Name, loop: Any, *, loader: bool) -> None:
    """Nothing that the loop calls changes the value or what it is made of, and nothing in front of the line reads an older value."""
    here = file.location(assign)
    for node in descendants(loop, cst.Name):
        if node.value == name.value and file.span(node)[0] < file.span(assign)[0] and is_name(file, node):
            raise refuse(f"{file.location(node)}: {name.value} is read in front of the line, where it would be another value")
    needed = {node.value for node in descendants(assign.value, cst.Name) if is_name(file, node)}
    held = {each for each in needed if not _fixed(scene, file, assign, each)}
    for call in descendants(loop, cst.Call):
        if not file.inside(call, assign) and changes.given(file, call, held):
            raise refuse(f"{file.location(call)}: `{file.text(call.func)}` may change what `{name.value}` is made of")
        shuffles = file.full_name(call.func) in changes.SHUFFLES and any(changes.root(arg.value) in held for arg in call.args)
        if shuffles:
            raise refuse(f"{file.location(call)}: `{file.text(call.func)}` changes what `{name.value}` is made of")
    made = changes.changed(scene.project, file, loop.body, {name.value})
    if made is not None:
        raise refuse(f"{file.location(made)}: `{file.text(made)}` changes it in the loop")
    if loader:
        generator = keyword(assign.value, "generator") if isinstance(assign.value, cst.Call) else None
        if generator is not None and isinstance(generator.value, cst.Call):
            raise refuse(f"{here}: its generator is made anew in the loop, so each pass has the same order")
        loading.one_iterator(file, loop)
        return
    _kept_nowhere(scene, file, name.value, loop)
    trains = any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value in ("step", "backward") for call in descendants(loop, cst.Call)
    )
    if trains and held:
        raise refuse(f"{here}: `{sorted(held)[0]}` may be what the loop trains")
    if any(keyword(call, "requires_grad") is not None for call in descendants(assign.value, cst.Call)):
        raise refuse(f"{here}: the tensor would gather the gradients of all steps")
    if isinstance(assign.value, cst.Call) and file.full_name(assign.value.func) in ("list", "dict", "set"):
        raise refuse(f"{here}: an empty container costs nothing, and each step may fill its own")


def _kept_nowhere(scene: Scene, file: PythonFile, name: str, loop: Any) -> None:
    """Each step makes one of its own: nothing may keep it, hand it out, or get it for an effect that is not known to leave it alone."""
    shared = sharing.Shared(scene.project, file, {name}).within(loop.body)
    for node in descendants(loop.body, (cst.Assign, cst.Yield, cst.Call)):
        if isinstance(node, cst.Call):
            unknown = isinstance(node.func, cst.Name) and file.import_of(node.func) is None
            known = unknown or not writers.for_effect(file, node) or any(True for _ in callees.meant(scene.project, file, node))
            if not known and shared.handed(node):
                raise refuse(f"{file.location(node)}: `{file.text(node.func)}` may change or keep `{name}`, and each step makes its own")
        elif isinstance(node, cst.Yield):
            if isinstance(node.value, cst.BaseExpression) and (shared.holds(node.value) or shared.wraps(node.value)):
                raise refuse(f"{file.location(node)}: `{name}` is handed out here, and each step makes its own")
        elif (shared.holds(node.value) or shared.wraps(node.value)) and any(
            not isinstance(each.target, (cst.Name, cst.Tuple)) for each in node.targets
        ):
            raise refuse(f"{file.location(node)}: `{name}` is kept here, and each step makes its own")


def _fixed(scene: Scene, file: PythonFile, assign: cst.Assign, name: str) -> bool:
    """Whether a name holds what nobody can change: a number, a text, a function, a class or a module."""
    node = next(each for each in descendants(assign.value, cst.Name) if each.value == name)
    scope = file.scope(node)
    found = list(scope[name]) if scope is not None else []
    plain = (cst.Integer, cst.Float, cst.BaseString, cst.FormattedString, cst.UnaryOperation, cst.BinaryOperation)
    if not found or name in file.imported:
        return name in file.imported or name in dir(builtins)
    for each in found:
        place = getattr(each, "node", None)
        if place is None:
            continue  # a builtin
        value = assigned(file, place)
        if not isinstance(place, (cst.FunctionDef, cst.ClassDef)) and not isinstance(value, plain):
            return False
    return True


def _impure(scene: Scene, file: PythonFile, call: cst.Call) -> str | None:
    """Why a call may not give the same again; None where it is a function of the project without effects, or makes a plain tensor."""
    full = file.full_name(call.func) or ""
    root, tail = full.split(".")[0], full.split(".")[-1]
    if full in ("len", "range", "int", "float", "tuple", "list", "min", "max", "sum", "math.sqrt", "abs"):
        return None
    if root in ("torch", "numpy") and tail in MAKES:
        return None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in (
        "bool",
        "float",
        "long",
        "tril",
        "triu",
        "view",
        "reshape",
        "size",
        "unsqueeze",
        "to",
    ):
        return None
    found = scene.project.functions(tail)
    if len(found) != 1 or isinstance(call.func, cst.Attribute):
        return f"`{file.text(call.func)}` is not known to give the same each time"
    reason = purity.obstacle(scene.project, *found[0]) or changes.lasting(scene.project, *found[0])
    return None if reason is None else f"{tail} cannot be called once only: {reason}"


def _kept(scene: Scene, file: PythonFile, call: cst.Call, assign: cst.Assign, text: str) -> str:
    """The loader's text with `persistent_workers=True`, without which moving it would keep no worker."""
    loader = scene.facts.get("loader")
    if loader is None or not loader.num_workers:
        raise refuse(f"{file.location(call)}: the loader has no workers to keep")
    if keyword(call, "persistent_workers") is not None or has_splat(call, "**"):
        raise refuse(f"{file.location(call)}: persistent_workers is given already, or comes from a **splat")
    worker_state.kept(scene.project)
    at, written = insertion(file, call)
    begin = file.span(assign)[0]
    raw = file.raw[begin : file.span(assign)[1]]
    return (raw[: at - begin] + written.format("persistent_workers=True").encode() + raw[at - begin :]).decode("utf-8")
