"""Tensors of images that lose their layout on the way through a network: made anew by shape alone, or copied into torch's default order.

A tensor that is made by the shape of another gets the default layout, whatever layout that one has (`torch.empty_like` and its kin keep
it); so does what `.contiguous()` makes of a permutation, although the permutation of channels from the last place to the second is
channels_last as it stands. Values stay the same; only their order in memory is another.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.effects import changes, sharing
from trainflash.knobs.kinds import KeptLayout
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.arrays import may_be_other
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional
from trainflash.knobs.reading.sizes import sizes_of
from trainflash.knobs.scene import Scene, Target, at_all
from trainflash.knobs.splices import Splice

MADE = ("empty", "zeros", "ones", "full")
DEFAULT = "torch.contiguous_format"
BACK = (0, 3, 1, 2)  # channels from the last place to the second
MOVED = ((-1, 1), (3, 1))  # the same, for images
Place = tuple[cst.Call, tuple[Splice, ...]]


def kept_layout(edit: KeptLayout, scene: Scene) -> tuple[Target, ...]:
    """All such places in functions of the program, as one target. Raises `UsageError` where there is none."""
    project, on_device = scene.project, not str(scene.facts.get("device")).startswith("cpu")
    files = project.parsed("torch")
    places = [
        (file.location(node), splices) for file in files for call in file.calls for node, splices in _at(project, file, call, on_device)
    ]
    if not places:
        raise refuse("no tensor is made by the shape of another, or copied into the default layout, in a function of the program")
    return (at_all(places, f"tensors made at {places[0][0]}", "kept"),)


def _at(project: Project, file: PythonFile, call: cst.Call, on_device: bool) -> Iterator[Place]:
    if file.function_around(call) is None or any(arg.star for arg in call.args):
        return
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    full = file.full_name(call.func) or ""
    if full in [f"torch.{name}" for name in MADE]:
        if on_device and keyword(call, "device") is None:
            return  # what it makes lies on the host
        size = keyword(call, "size") or positional(call, 0)
        like = sizes_of(size.value) if size is not None else None
        if like is not None and not may_be_other(project, file, like):
            yield from _alike(file, call, full.rpartition(".")[2])
    elif method in [f"new_{name}" for name in MADE] and isinstance(call.func, cst.Attribute):
        yield from _alike(file, call, method.removeprefix("new_"), call.func.value)
    elif method in ("contiguous", "to") and isinstance(call.func, cst.Attribute) and not full.startswith("torch."):
        asked = keyword(call, "memory_format")
        back = method == "contiguous" and not call.args and _is_back(call.func.value)
        copies = back or (asked is not None and len(call.args) == 1 and file.full_name(asked.value) == DEFAULT)
        if copies and not _written(project, file, call, call.func.value):
            yield call, (Splice(file.path, *file.span(call), file.outer_text(call.func.value)),)


def _alike(file: PythonFile, call: cst.Call, name: str, of: cst.BaseExpression | None = None) -> Iterator[Place]:
    """`torch.zeros_like(x)` for `torch.zeros(x.shape, …)` and `x.new_zeros(x.shape)`, with the type of numbers that it had."""
    size = keyword(call, "size") or positional(call, 0)
    like = sizes_of(size.value) if size is not None else None
    if like is None or dotted(like) is None or (of is not None and file.text(of) != file.text(like)):
        return
    others = [arg for arg in call.args if arg is not size]
    if any(arg.keyword is not None and arg.keyword.value not in ("dtype", "device", "requires_grad", "fill_value") for arg in others):
        return
    mine = {word: f"{file.text(like)}.{word}" for word in ("dtype", "device")}
    given = [
        file.text(arg).rstrip(", \n")
        for arg in others
        if arg.keyword is None or arg.keyword.value not in mine or file.text(arg.value) != mine[arg.keyword.value]
    ]
    typed = of is not None or keyword(call, "dtype") is not None
    like_name, needed = imports.reach(file, "torch", f"{name}_like")
    if not typed and name == "full" and not _fraction(call):
        return  # the type of its numbers is that of what it is filled with
    if not typed:
        default, more = imports.reach(file, "torch", "get_default_dtype")
        given, needed = [*given, f"dtype={default}()"], (*needed, *more)
    text = f"{like_name}({', '.join([file.text(like), *given])})"
    yield call, (*needed, Splice(file.path, *file.span(call), text))


def _fraction(call: cst.Call) -> bool:
    """Whether `torch.full` is given a number with a point, and so makes tensors of torch's default type."""
    filled = keyword(call, "fill_value") or positional(call, 1)
    return filled is not None and isinstance(literal(filled.value), float)


def _written(project: Project, file: PythonFile, call: cst.Call, copied: cst.BaseExpression) -> bool:
    """Whether the copy, or what it was made of, is changed in place: without the copy that would change the other one."""
    if changes.result_changed(project, [(file, call)]) is not None:
        return True
    while isinstance(copied, cst.Call) and isinstance(copied.func, cst.Attribute) and callees.called_name(copied) in sharing.PASSES:
        copied = copied.func.value
    function = file.function_around(call)
    name = file.text(copied)
    assert function is not None
    if dotted(copied) is None:
        return False  # what a function has just made
    later = [each for each in descendants(function.body, cst.CSTNode) if _follows(file, call, each)]
    return any(changes.changed(project, file, each, {name}) is not None for each in later)


def _follows(file: PythonFile, call: cst.Call, node: cst.CSTNode) -> bool:
    """Whether a statement may run behind the call: further down, or in the same loop."""
    if not isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) or file.inside(call, node):
        return False
    return file.span(node)[0] > file.span(call)[0] or any(file.inside(node, loop) for loop in file.loops_around(call))


def _is_back(node: cst.BaseExpression) -> bool:
    """Whether `node` is `x.permute(0, 3, 1, 2)` or `x.movedim(-1, 1)`: what held its channels last."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    if node.func.attr.value in ("movedim", "moveaxis"):
        return tuple(literal(arg.value) for arg in node.args) in MOVED and all(arg.keyword is None for arg in node.args)
    if node.func.attr.value != "permute":
        return False
    given = [arg.value for arg in node.args]
    if len(given) == 1 and isinstance(given[0], (cst.Tuple, cst.List)):
        given = [each.value for each in given[0].elements]
    return tuple(literal(each) for each in given) == BACK
