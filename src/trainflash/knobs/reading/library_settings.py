"""Settings of a library that the program makes: each assignment to one, however it is spelled, and the calls that decide the same."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.project import Project, is_module
from trainflash.knobs.reading.expressions import argument_node, given_to
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, string_value, targets_of

Given = tuple[PythonFile, cst.CSTNode, cst.BaseExpression | None]
FLAGS = ("enabled", "benchmark")  # the first parameters of torch.backends.cudnn.flags, in their order
WITH_ARGUMENT = re.compile(r"(?P<call>[\w.]+)\((?P<argument>\w+)\)$")


def mentions(project: Project, name: str) -> list[tuple[PythonFile, cst.CSTNode]]:
    """Calls of the dotted `name` and assignments to it; of `name(argument)` the calls that pass it as anything but None."""
    passed = WITH_ARGUMENT.match(name)
    full = name if passed is None else passed["call"]
    owner, _, last = full.rpartition(".")
    found: list[tuple[PythonFile, cst.CSTNode]] = []
    for file in project.parsed(last):
        for call in file.calls:
            fetched = dotted(call.func) == "getattr" and len(call.args) > 1 and string_value(call.args[1].value) == last
            if full_name(project, file, call.func) == full:
                given = keyword(call, passed["argument"]) if passed is not None else None
                found += [(file, call)] if passed is None or (given is not None and dotted(given.value) != "None") else []
            elif passed is None and fetched and full_name(project, file, call.args[0].value) == owner:
                found.append((file, call))
    return found + [(file, node) for file, node, _ in assigned(project, name)]


def assigned(project: Project, name: str) -> list[Given]:
    """Assignments to the dotted `name` with what is assigned, None where that is not written out.

    That is also one among others, by `setattr`, and by what sets it for a block: torch's `flags`, which gives its default to each flag that
    it is not told, and `config.patch`.
    """
    owner, _, last = name.rpartition(".")
    found: list[Given] = []
    for file in project.parsed(last):
        for node in file.nodes:
            if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
                value = None if isinstance(node, cst.AugAssign) else node.value
                pairs = [pair for target in targets_of(node) for pair in _pairs(target, value)]
                found += [(file, node, given) for part, given in pairs if full_name(project, file, part) == name]
        for call in file.calls:
            if dotted(call.func) == "setattr" and len(call.args) == 3 and string_value(call.args[1].value) == last:
                found += [(file, call, call.args[2].value)] if full_name(project, file, call.args[0].value) == owner else []
            elif full_name(project, file, call.func) in (f"{owner}.set_flags", f"{owner}.patch") and _says(file, call, last):
                found.append((file, call, None))
    return found + [(file, call, _flag(file, call, last)) for file, call in flags(project, owner)]


def _says(file: PythonFile, call: cst.Call, name: str) -> bool:
    return re.search(rf"\b_?{name}\b", file.text(call)) is not None


def flags(project: Project, owner: str) -> list[tuple[PythonFile, cst.Call]]:
    """Calls of `flags` of a part of torch, such as `torch.backends.cudnn`."""
    calls = [(file, call) for file in project.parsed("flags") for call in file.calls]
    return [(file, call) for file, call in calls if full_name(project, file, call.func) == f"{owner}.flags"]


def _flag(file: PythonFile, call: cst.Call, name: str) -> cst.BaseExpression | None:
    return argument_node(file, call, name, FLAGS.index(name) if name in FLAGS else None)


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression | None) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Each single target and what it is given; None where that is not written out."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return [(target, value)]
    written = isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements)
    values = [each.value for each in value.elements] if written else [None] * len(target.elements)  # type: ignore[union-attr]
    return [(part.value, given) for part, given in zip(target.elements, values, strict=True)]


def full_name(project: Project, file: PythonFile, node: cst.CSTNode) -> str | None:
    """The dotted name with imports resolved, also through the program's own modules and names that stand for a module or a function."""
    name = dotted(node)
    if name is None:
        return None
    first, dot, rest = name.partition(".")
    if (full := file.import_of(node)) is not None:
        return _through_modules(project, f"{full}{dot}{rest}")
    around = file.function_around(node)
    given = [each for owner in (around, file.module) if owner is not None for each in given_to(owner, first)]
    stands = {file.full_name(each) for each in given if dotted(each) is not None}
    named = stands.pop() if len(stands) == 1 else None
    return name if named is None else _through_modules(project, f"{named}{dot}{rest}")


def _through_modules(project: Project, full: str) -> str:
    """`torch.backends` for `common.torch.backends`, where a module `common` of the program imports torch."""
    module, _, rest = full.lstrip(".").partition(".")
    while rest:
        name, dot, more = rest.partition(".")
        for other in project.parsed(name):
            if is_module(other.path, module) and name in other.imported:
                return _through_modules(project, f"{other.imported[name]}{dot}{more}")
        module, rest = f"{module}.{name}", more
    return full


def trains_within(file: PythonFile, call: cst.Call) -> bool:
    """Whether the block that `call` opens holds a backward pass, or hands the training to a library."""
    block = next((up for up in file.ancestors(call) if isinstance(up, cst.With)), None)
    names = {(dotted(each.func) or "").split(".")[-1] for each in descendants(block.body, cst.Call)} if block is not None else set()
    return any(name in ("backward", "fit") or name.startswith("train") for name in names)
