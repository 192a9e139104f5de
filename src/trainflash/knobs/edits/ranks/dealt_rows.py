"""What each rank takes for itself, dealt out in turn: `rows[rank : n * world : world]` in place of `rows[rank * n : (rank + 1) * n]`.

Where rows lie in an order that says something of their cost, such as length, a run of them for each rank gives one rank all the dear ones.
Dealt out, each rank has as many rows as before, and all ranks together have the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits.ranks import no_samples
from trainflash.knobs.kinds import DealtRows
from trainflash.knobs.reading.expressions import given_to, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

OF_RANKS = re.compile(r"rank|world|replica|process_index|num_processes", re.IGNORECASE)
SPLITS = ("numpy.array_split", "numpy.split", "torch.chunk", "torch.tensor_split")
SPLIT_METHODS = ("chunk", "tensor_split")
ROUNDED_UP = "math.ceil"
SIMPLE = (cst.Name, cst.Attribute, cst.Subscript)


@dataclass(frozen=True)
class _Run:
    """`rows`, of which rank number `rank` of `world` takes a run; all together take the first `whole`, or all where that is None.

    Without `rows` their numbers are taken, as a `range`.
    """

    file: PythonFile
    node: cst.BaseExpression
    rows: str | None
    rank: str
    world: str
    whole: str | None
    source: cst.BaseExpression | None  # the rows where they are named

    @property
    def dealt(self) -> str:
        """The same number of rows, dealt out in turn."""
        if self.rows is None:
            return f"range({self.rank}, {self.whole}, {self.world})"
        return (
            f"{self.rows}[{self.rank}::{self.world}]" if self.whole is None else f"{self.rows}[{self.rank} : {self.whole} : {self.world}]"
        )

    @property
    def of_ranks(self) -> bool:
        """Whether names say that this is about ranks, and not about folds or pieces of something else."""
        return OF_RANKS.search(f"{self.rank} {self.world}") is not None


def dealt_rows(edit: DealtRows, scene: Scene) -> tuple[Target, ...]:
    """The run at the owner's or the finding's line, else the only one of the program. Raises `UsageError` where it is not clear."""
    runs = (_run(file, node) for file in scene.project.parsed() for node in file.nodes if isinstance(node, (cst.Subscript, cst.Call)))
    found = [run for run in runs if run is not None and run.of_ranks]
    place = scene.at or (scene.finding.location if scene.finding is not None else None)
    here = [run for run in found if place is not None and run.file.path == place.file and run.file.covers(run.node, place.line)]
    if len(here or found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} place where each rank takes a run of the rows was found")
    run = (here or found)[0]
    no_samples.check(scene.project, run.file, run.node, run.source)
    at, splice = run.file.location(run.node), Splice(run.file.path, *run.file.span(run.node), run.dealt)
    return (Target(at, "runs", lambda value: (splice,), f"`{run.file.text(run.node)}` at {at}", run.dealt),)


def _run(file: PythonFile, node: cst.Subscript | cst.Call) -> _Run | None:
    if isinstance(node, cst.Call):
        plain = dotted(node.func) == "range" and len(node.args) == 2 and not any(arg.star or arg.keyword for arg in node.args)
        return _cut(file, node, node.args[0].value, node.args[1].value, None) if plain else None
    part = node.slice[0].slice if len(node.slice) == 1 else None
    if isinstance(part, cst.Slice):
        whole = part.lower is not None and part.upper is not None and part.step is None
        return _cut(file, node, part.lower, part.upper, node.value) if whole else None  # type: ignore[arg-type]
    return _piece(file, node, part.value) if isinstance(part, cst.Index) else None


def _cut(
    file: PythonFile, node: cst.BaseExpression, lower: cst.BaseExpression, upper: cst.BaseExpression, rows: cst.BaseExpression | None
) -> _Run | None:
    """`rows[rank * n : (rank + 1) * n]` or `range(rank * n, (rank + 1) * n)`, in whatever order and with whatever of it under a name."""
    start, end = _value(file, lower), _value(file, upper)
    ended, last = _bounded(file, end)
    for rank, size in _factors(start):
        r, n = ("".join(file.outer_text(factor).split()) for factor in (rank, size))
        after = {f"{one}*{n}" for one in (f"({r}+1)", f"(1+{r})")} | {f"{n}*{one}" for one in (f"({r}+1)", f"(1+{r})")}
        if _plain(file, ended) not in after | {f"{_plain(file, lower)}+{n}", f"{_plain(file, start)}+{n}"}:
            continue
        told = _plain(file, _value(file, last)) if last is not None else None
        counted = f"len({_plain(file, rows)})" if rows is not None else told
        if told not in (None, counted):
            continue
        share = _share(file, node, size, counted)
        if share is not None:
            whole = share[1] if rows is not None or share[1] is not None else file.outer_text(last)  # type: ignore[arg-type]
            return _Run(file, node, None if rows is None else file.outer_text(rows), file.outer_text(rank), share[0], whole, rows)
    return None


def _bounded(file: PythonFile, end: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """Of `min(end, last)` both; any other expression alone."""
    if isinstance(end, cst.Call) and dotted(end.func) == "min" and len(end.args) == 2:
        one, other = (arg.value for arg in end.args)
        return (other, one) if _plain(file, _value(file, one)).startswith("len(") else (one, other)
    return end, None


def _piece(file: PythonFile, node: cst.Subscript, rank: cst.BaseExpression) -> _Run | None:
    """`numpy.array_split(rows, world)[rank]` and its like."""
    call = node.value
    if not isinstance(call, cst.Call) or has_splat(call, "*") or has_splat(call, "**"):
        return None
    given: list[cst.BaseExpression] = [arg.value for arg in call.args if arg.keyword is None]
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in SPLIT_METHODS and file.full_name(call.func) not in SPLITS:
        given.insert(0, call.func.value)
    elif file.full_name(call.func) not in SPLITS:
        return None
    if len(given) != 2 or any(arg.keyword is not None for arg in call.args) or not isinstance(given[0], SIMPLE):
        return None
    rows = file.outer_text(given[0])
    if (file.full_name(call.func) or "").startswith("numpy."):  # which makes an array of a list
        if not isinstance(call.func, cst.Attribute):
            return None
        rows = f"{file.text(call.func.value)}.asarray({rows})"
    return _Run(file, node, rows, file.outer_text(rank), file.outer_text(given[1]), None, given[0])


def _factors(node: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        yield node.left, node.right
        yield node.right, node.left


def _value(file: PythonFile, node: cst.BaseExpression) -> cst.BaseExpression:
    """What a name of the function or of the class around it was given, where that is one expression; else `node` itself."""
    name, around = dotted(node), file.function_around(node)
    if name is None:
        return node
    owner = (file.class_of(around) if around is not None else None) if name.startswith("self.") else around or file.module
    given = given_to(owner, name) if owner is not None else []
    return given[0] if len(given) == 1 else node


def _share(file: PythonFile, node: cst.BaseExpression, size: cst.BaseExpression, counted: str | None) -> tuple[str, str | None] | None:
    """By what the number of all rows, `counted`, was divided to have `size`, and the product of both where a rest is left out."""
    rows, world, up = _divided(file, _value(file, size))
    spelled = _spelled_at(file, node, world) if world is not None else None
    if spelled is None or (up and (rows is None or _plain(file, _value(file, rows)) != counted)):
        return None
    compound = isinstance(size, cst.BinaryOperation) and not size.lpar
    return spelled, None if up else f"({file.text(size)}) * {spelled}" if compound else f"{file.outer_text(size)} * {spelled}"


def _divided(file: PythonFile, value: cst.BaseExpression) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None, bool]:
    """What is divided by what, and whether the ratio is rounded up; a number that is rounded up by hand has no name here."""
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):  # -(-n // world)
        rows, world, _ = _divided(file, value.expression)
        negative = isinstance(rows, cst.UnaryOperation) and isinstance(rows.operator, cst.Minus)
        return (rows.expression, world, True) if negative else (None, None, False)  # type: ignore[union-attr]
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.FloorDivide):
        rows, world = value.left, value.right
        if _plain(file, rows).endswith(f"+{_plain(file, world)}-1"):  # (n + world - 1) // world
            rows = rows.left.left if isinstance(rows, cst.BinaryOperation) and isinstance(rows.left, cst.BinaryOperation) else None
            return rows, world, True
        return rows, world, False
    if isinstance(value, cst.Call) and len(value.args) == 1 and isinstance(value.args[0].value, cst.BinaryOperation):
        ratio, rounds = value.args[0].value, file.full_name(value.func)
        if isinstance(ratio.operator, cst.Divide) and rounds in (ROUNDED_UP, "int", "math.floor"):
            return ratio.left, ratio.right, rounds == ROUNDED_UP
    return None, None, False


def _spelled_at(file: PythonFile, node: cst.BaseExpression, world: cst.BaseExpression) -> str | None:
    """How `node`'s function says `world`: as where the size was worked out, if that is the same function, or as an attribute."""
    text, here = file.outer_text(world), file.function_around(node)
    there = file.function_around(world)
    if there is here or (dotted(world) or "").startswith("self."):
        return text
    owner = file.class_of(there) if there is not None else None
    lines = descendants(owner, cst.Assign) if owner is not None else ()
    kept = (dotted(line.targets[0].target) for line in lines if _plain(file, line.value) == _plain(file, world))  # type: ignore[attr-defined]
    return next((name for name in kept if name is not None and name.startswith("self.")), None)


def _plain(file: PythonFile, node: cst.BaseExpression) -> str:
    """Source without spaces, and without parentheses around it."""
    return "".join(file.text(node).split())
