"""Columns that are padding in every row of a batch: a collate function that cuts them, of torch's own kind or around the program's own.

Where a function or a generator of the program makes the batches, a decorator does.
"""

from __future__ import annotations

from textwrap import indent

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches.collating import LOADER, batch_maker, collate_with, own_collate
from trainflash.knobs.edits.statements import above_in_module, decorating
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import CommonPadding
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import free_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import masked, padding
from trainflash.schema import Location, PaddedField

NAME, DECORATOR = "cut_common_padding", "without_common_padding"
FUNCTION = '''\
def {name}({params}):
    """A batch without the columns that are padding in all of its samples."""
    batch = {batch}
{cut}
    return batch


'''
CUT = """\
used = {used}
width = int(used.any(0).cumsum(0).argmax()) + 1
{fields}"""
DECORATION = '''\
def {name}(make):
    """Batches without the columns that are padding in all of their samples."""

    @{wraps}(make)
    def cut(*args, **kwargs):
{body}

    return cut


'''


def common_padding(edit: CommonPadding, scene: Scene) -> tuple[Target, ...]:
    """The training loader's call. Raises `UsageError` where it is not known how it joins samples, or padding was not seen so."""
    fields = scene.summary.padded
    if not fields:
        raise refuse("the run did not see which parts of a batch end in padding that all of its samples have")
    masked.leaves_out(scene.project)
    if scene.summary.padded_by is not None:
        return (_decorated(scene, scene.summary.padded_by, fields),)
    file, call = the_call(LOADER, scene)
    here = file.location(call)
    own = own_collate(scene, file, call)
    free_name(file, call, NAME)
    _network_of_any_width(scene, fields[0].width)
    splices = _written(file, call, fields, own)
    return (Target(here, None, lambda value: splices, f"collate_fn of the call at {here}", "without the padding of all rows"),)


def _decorated(scene: Scene, place: Location, fields: tuple[PaddedField, ...]) -> Target:
    """The function that makes the batches, with a decorator that cuts them."""
    file, function = batch_maker(scene.project, place)
    here, name = file.location(function), function.name.value
    yields = [each for each in descendants(function.body, cst.Yield) if file.function_around(each) is function]
    if function.asynchronous is not None or any(not isinstance(file.parent(each), cst.Expr) for each in yields):
        raise refuse(f"{here}: {name} does more than yield batches")
    free_name(file, function, DECORATOR)
    _network_of_any_width(scene, fields[0].width)
    wraps, added = imports.reach(file, "functools", "wraps")
    text = DECORATION.format(name=DECORATOR, wraps=wraps, body=indent(_around(fields, bool(yields)), 8 * " "))
    splices = (*added, above_in_module(file, function, text), decorating(file, function, DECORATOR))
    return Target(here, None, lambda value: splices, f"the batches of {name} at {here}", "without the padding of all rows")


def _around(fields: tuple[PaddedField, ...], yields: bool) -> str:
    """What the decorator does with the batches that `make` gives, each one a new object."""
    kinds = {type(field.key) for field in fields}
    made, copied, whole = "made", "batch = dict(made)\n", "batch"
    if kinds == {type(None)}:
        made, copied = "batch", ""
    elif kinds == {int}:
        copied, whole = "batch = list(made)\n", "tuple(batch) if isinstance(made, tuple) else batch"
    if yields:
        return f"for {made} in make(*args, **kwargs):\n" + indent(f"{copied}{_cut(fields)}\nyield {whole}", 4 * " ")
    return f"{made} = make(*args, **kwargs)\n{copied}{_cut(fields)}\nreturn {whole}"


def _cut(fields: tuple[PaddedField, ...]) -> str:
    """What takes the columns out of `batch` that no row needs."""
    names = ["batch" if field.key is None else f"batch[{_spelled(field.key)}]" for field in fields]
    used = [_unlike(name, field) for name, field in zip(names, fields, strict=True)]
    joined = " | ".join(f"({each})" if " != " in each and not each.startswith("(") else each for each in used) if len(used) > 1 else used[0]
    if len(names) > 1:
        keys = ", ".join(_spelled(field.key) for field in fields)
        cut = f"for field in ({keys}):\n    batch[field] = batch[field][:, :width].contiguous()"
    else:
        cut = f"{names[0]} = {names[0]}[:, :width].contiguous()"
    return CUT.format(used=joined, fields=cut)


def _network_of_any_width(scene: Scene, width: int) -> None:
    """Raises `UsageError` where a name of the program that holds the width also shapes the network."""
    for file, node in _names_of(scene.project, width):
        padding.network_of_any_width(scene, file, node, node)


def _names_of(project: Project, width: int) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """Names and fields that are given the number itself."""
    found = []
    for file in project.parsed(str(width)):
        for node in file.nodes:
            if isinstance(node, cst.Integer) and literal(node) == width:
                up = file.parent(node)
                around = file.parent(up) if isinstance(up, cst.Param) else up
                targets = [each.target for each in around.targets] if isinstance(around, cst.Assign) else []
                targets += [around.target] if isinstance(around, cst.AnnAssign) else [up.name] if isinstance(up, cst.Param) else []
                found += [(file, each) for each in targets if isinstance(each, (cst.Name, cst.Attribute))]
    return found


def _written(file: PythonFile, call: cst.Call, fields: tuple[PaddedField, ...], own: cst.BaseExpression | None) -> tuple[Splice, ...]:
    """The new function, and how the loader is given it: beside the program's `own`, where there is one."""
    if own is None:
        collate, added = imports.reach(file, "torch.utils.data", "default_collate")
        params, batch, handed = "samples", f"{collate}(samples)", NAME
    else:
        partial, added = imports.reach(file, "functools", "partial")
        places = any(isinstance(field.key, int) for field in fields)  # of a tuple, which cannot be changed
        batch = "list(collate(samples))" if places else "collate(samples)"
        if any(isinstance(field.key, str) for field in fields):  # the program may use its own again
            copied, more = imports.reach(file, "copy", "copy")
            batch, added = f"{copied}({batch})", (*more, *added)
        params = "samples, collate"
        handed = f"{partial}({NAME}, collate={file.outer_text(own)})"
    text = FUNCTION.format(name=NAME, params=params, batch=batch, cut=indent(_cut(fields), 4 * " "))
    return (*added, above_in_module(file, call, text), collate_with(file, call, own, handed))


def _spelled(key: str | int | None) -> str:
    return f'"{key}"' if isinstance(key, str) and key.isidentifier() else repr(key)


def _unlike(name: str, field: PaddedField) -> str:
    """Where a field holds something else than its fill, (rows, width)."""
    unlike = f"{name} != {field.fill!r}"
    if isinstance(field.fill, bool):
        unlike = f"~{name}" if field.fill else name
    if field.dims == 2:
        return unlike
    return f"{unlike}.flatten(2).any(2)" if unlike == name else f"({unlike}).flatten(2).any(2)"
