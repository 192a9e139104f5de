"""When a loop over micro-batches makes its last pass, as a condition that can be asked at its top; and what may change such a condition."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import free_name, given_to, literal, refuse
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, parameter_names, targets_of
from trainflash.knobs.splices import Splice

COUNTERS = ("micro", "number", "part_number")  # how passes are counted that the program does not count
LISTS = ("parts", "micro_batches")  # how what they go over is called where it has no name
SIZED = ("list", "tuple", "sequence")
LISTING = ("list", "tuple", "sorted")
SPLITS = ("chunk", "split", "tensor_split", "unbind")
SETS = (*ASSIGNS, cst.NamedExpr, cst.For, cst.CompFor, cst.AsName)


def last_pass(file: PythonFile, loop: cst.For) -> tuple[str, tuple[Splice, ...]]:
    """The condition, and the edit that counts what is not counted yet. Raises `UsageError` where the last pass cannot be told ahead."""
    counted, target = loop.iter, loop.target
    called = dotted(counted.func) if isinstance(counted, cst.Call) else None
    if called == "range" and isinstance(target, cst.Name):
        if (test := _of_range(file, loop, target.value, counted.args)) is not None:  # type: ignore[attr-defined]
            return test, ()
    elif called == "enumerate" and isinstance(target, cst.Tuple) and len(target.elements) == 2:
        if (found := _of_count(file, loop, target.elements[0].value, counted.args)) is not None:  # type: ignore[attr-defined]
            return found
    elif (listed := _listed(file, loop, counted)) is not None:
        counter = free_name(file, loop, *COUNTERS)
        whole = _unchanged(file, loop, counted, counter)
        return f"{counter} == len({whole}) - 1", (*listed, *_enumerated(file, loop, counter, file.text(counted)))
    elif _splits(counted):
        counter, whole = free_name(file, loop, *COUNTERS), free_name(file, loop, *LISTS)
        return f"{counter} == len({whole}) - 1", (_made_a_list(file, loop, whole, counted), *_enumerated(file, loop, counter, whole))
    raise refuse(f"{file.location(loop)}: which pass of the loop is the last one is not written as a number")


def _of_range(file: PythonFile, loop: cst.For, name: str, args: Sequence[cst.Arg]) -> str | None:
    """`range(n)`, or `range(0, n, step)`, whose last pass is the one that a further step would not follow."""
    if any(arg.star or arg.keyword is not None for arg in args):
        return None
    if len(args) == 1:
        return f"{name} == {_unchanged(file, loop, args[0].value, name)} - 1"
    if len(args) == 3:
        _unchanged(file, loop, args[0].value, name)
        end, step = (_unchanged(file, loop, arg.value, name) for arg in args[1:])
        return None if isinstance(args[2].value, cst.UnaryOperation) else f"{name} + {step} >= {end}"
    return None


def _of_count(
    file: PythonFile, loop: cst.For, number: cst.BaseExpression, args: Sequence[cst.Arg]
) -> tuple[str, tuple[Splice, ...]] | None:
    """`enumerate(parts)`, or `enumerate(parts, 1)`; what a caller hands over is made a list first."""
    start = literal(args[1].value) if len(args) == 2 and not args[1].star else 0
    if not isinstance(number, cst.Name) or not isinstance(start, int):
        return None
    listed = _listed(file, loop, args[0].value)
    if listed is None:
        return None
    whole = f"len({_unchanged(file, loop, args[0].value, number.value)})"
    return f"{number.value} == {whole}{f' - {1 - start}' if start < 1 else f' + {start - 1}' if start > 1 else ''}", listed


def _listed(file: PythonFile, loop: cst.For, node: cst.BaseExpression) -> tuple[Splice, ...] | None:
    """What makes `node` a list: nothing where it is one, a line in front of the loop for a parameter; None for anything else."""
    if _is_list(file, node):
        return ()
    function = file.function_around(loop)
    if not isinstance(node, cst.Name) or function is None or given_to(function, node.value):
        return None
    if node.value not in parameter_names(function):
        return None
    return (_made_a_list(file, loop, node.value, node),)


def _made_a_list(file: PythonFile, loop: cst.For, name: str, node: cst.BaseExpression) -> Splice:
    """A line in front of the loop that gives `name` all of what `node` goes over."""
    start = file.span(loop)[0]
    return Splice(file.path, start, start, f"{name} = list({file.text(node)}){file.newline}{file.indent(loop)}")


def _enumerated(file: PythonFile, loop: cst.For, counter: str, whole: str) -> tuple[Splice, ...]:
    """The header of the loop, with its passes counted."""
    bare = isinstance(loop.target, cst.Tuple) and not loop.target.lpar
    start, end = file.outer_span(loop.target)
    target = Splice(
        file.path, start, end, f"{counter}, ({file.text(loop.target)})" if bare else f"{counter}, {file.outer_text(loop.target)}"
    )
    return target, Splice(file.path, *file.outer_span(loop.iter), f"enumerate({whole})")


def _splits(node: cst.BaseExpression) -> bool:
    """Whether `node` cuts a batch into parts: `x.chunk(4)`, or several such in a `zip`."""
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return False
    if dotted(node.func) == "zip":
        return bool(node.args) and all(arg.keyword is None and _splits(arg.value) for arg in node.args)
    return callees.called_name(node) in SPLITS


def _is_list(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` is a name whose length can be asked for, as far as the source says: made as a list, or declared to be one."""
    name = dotted(node)
    if name is None:
        return False
    function = file.function_around(node)
    params = [] if function is None else [each for each in descendants(function.params, cst.Param) if each.name.value == name]
    if params:
        asked = params[0].annotation
        return asked is not None and file.text(asked.annotation).split("[")[0].split(".")[-1].lower() in SIZED
    made = given_to(function or file.module, name)
    return bool(made) and all(
        isinstance(each, (cst.List, cst.ListComp, cst.Tuple))
        or (isinstance(each, cst.Call) and (dotted(each.func) in LISTING or callees.called_name(each) in SPLITS))
        for each in made
    )


def _unchanged(file: PythonFile, loop: cst.For, node: cst.BaseExpression, counter: str) -> str:
    """Source of `node`, which gives the same in each pass of the loop; raises `UsageError` where it may not."""
    if any(descendants(node, cst.Call)):
        raise refuse(f"{file.location(loop)}: `{file.text(node)}` may give another number in the loop")
    fixed(file, loop, {each.value for each in descendants(node, cst.Name)} | {counter})
    atom = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Integer))
    return file.text(node) if atom else f"({file.text(node)})"


def set_elsewhere(file: PythonFile, name: str) -> bool:
    """Whether a function declares that it sets a `name` outside itself."""
    declares = (node for node in file.nodes if isinstance(node, (cst.Global, cst.Nonlocal)))
    return any(item.name.value == name for node in declares for item in node.names)


def fixed(file: PythonFile, loop: cst.For, names: set[str]) -> None:
    """Raises `UsageError` where the loop, or a function that it may call, sets one of `names`, or changes what it holds."""
    if shared := sorted(name for name in names if set_elsewhere(file, name)):
        raise refuse(f"{file.location(loop)}: other functions set {shared[0]}")
    for node in descendants(loop.body, (*SETS, cst.Call)):
        called = node.func if isinstance(node, cst.Call) else None  # type: ignore[attr-defined]
        changes = isinstance(called, cst.Attribute) and (dotted(called.value) or "").split(".")[0] in names - {"self"}
        if changes or dotted(called) in ("setattr", "delattr") or (called is None and sets(node, names)):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` changes which micro-batch is the last")


def sets(node: cst.CSTNode, names: set[str]) -> bool:
    return any(name.value in names for target in targets_of(node) for name in descendants(target, cst.Name))  # type: ignore[attr-defined]
