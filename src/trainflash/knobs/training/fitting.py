"""Whether an option of a library's call fits what the program does elsewhere: rates that are tensors, backends without modes."""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, positional, string_value
from trainflash.knobs.reading.sources import Resolver

RATE = "lr"
TENSORS = ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor", "torch.full", "torch.ones", "torch.zeros", "torch.nn.Parameter")
IN_PLACE = ("fill_", "copy_", "mul_", "div_", "add_", "sub_", "zero_")  # methods that only a tensor has
COMPILE = "torch.compile"
OF_ANY_SIZE = ("inductor", "eager", "aot_eager", "aot_eager_decomp_partition")  # torch's own that take symbolic sizes
PLUGIN = "DynamoPlugin"  # of accelerate, whose first argument is the backend
KNOWS_MODES = "inductor"  # the only backend that does, and the default


def backend_knows_shapes(resolver: Resolver, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the compiled graph would go to a backend that may not take sizes that are no numbers."""
    if not _has_backend(resolver, file, call, OF_ANY_SIZE):
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may have a backend that takes fixed shapes only")


def compiles_alone(project: Project, call: cst.CSTNode) -> None:
    """Raises `UsageError` where something else is compiled, too, which may be what is compiled again: a module's method, a decorator."""
    for file in project.parsed("compile"):
        bare = [each.decorator for function in file.functions for each in function.decorators]
        other = [node for node in bare if node is not call and file.full_name(node) == COMPILE]
        other += [each for each in file.calls if each is not call and callees.method_name(each) == "compile" and not _of_module(file, each)]
        for node in other:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` compiles, too, and which of them is compiled anew is not told")


def _of_module(file: PythonFile, call: cst.Call) -> bool:
    return (dotted(call.func) or "").split(".")[0] in file.imported


def backend_knows_modes(resolver: Resolver, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where `mode` would go to another backend than torch's own: to a function it is one argument too many."""
    if not _has_backend(resolver, file, call, (KNOWS_MODES,)):
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may have a backend of its own, which does not know modes")


def _has_backend(resolver: Resolver, file: PythonFile, call: cst.Call, names: tuple[str, ...]) -> bool:
    """Whether `torch.compile` is given one of the backends `names`, or none."""
    try:
        found = resolver.argument(file, call, "backend", 0 if (dotted(call.func) or "").endswith(PLUGIN) else None)
    except UsageError:  # what is computed, such as a function
        return False
    return found is None or found.value in (None, *names)


def rates_are_numbers(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where a learning rate is a tensor: updates of lists of tensors do not take one."""
    second = positional(call, 1)
    given = [(file, second.value)] if second is not None else []
    given += [(where, value) for where in project.parsed(RATE) for node in where.nodes for value in _as_rate(where, node)]
    for where, value in given:
        if _is_tensor(where, value, 0):
            raise refuse(
                f"{where.location(value)}: the learning rate `{short(where.text(value))}` is a tensor, which foreach does not take"
            )


def _as_rate(file: PythonFile, node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What `node` makes a learning rate: as an argument, under its key, or changed in place there."""
    if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == RATE:
        return [node.value]
    if isinstance(node, cst.DictElement) and string_value(node.key) == RATE:
        return [node.value]
    if isinstance(node, cst.Assign) and any(_at_key(each.target) for each in node.targets):
        return [node.value]
    changed = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in IN_PLACE
    return [node] if changed and _at_key(node.func.value) else []  # type: ignore[attr-defined,list-item]


def _at_key(node: cst.BaseExpression) -> bool:
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and string_value(index.value) == RATE


def _is_tensor(file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
    """Whether `node` makes a tensor, or is a name that is given one in the same function or in the file."""
    if isinstance(node, cst.Call):
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        inner = isinstance(node.func, cst.Attribute) and method != "item" and _is_tensor(file, node.func.value, depth)
        return file.full_name(node.func) in TENSORS or method in IN_PLACE or inner
    if isinstance(node, cst.Name) and depth == 0:
        around = file.function_around(node)
        given = given_to(around, node.value) if around is not None else []
        return any(_is_tensor(file, value, 1) for value in given or given_to(file.module, node.value))
    return False
