"""Elements of a tensor that a loop asks for one by one: all of them as Python's numbers at once.

`for one in truth: … one.item()` goes over `truth.flatten().tolist()`; `value[t, g].item()` reads `value_numbers[t][g]` of a list that is
made in front of the outermost loop that leaves the tensor alone. The numbers are the same: `tolist` gives what `item` gives of each. A
condition such as `labels[i] == labels[j]` compares them, too; what an element is compared with must be another one, or a whole number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.lists.left_alone import is_there, left_alone, stays
from trainflash.knobs.kinds import PlainNumbers
from trainflash.knobs.reading.arrays import is_array
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import SCOPES, PythonFile, clauses, descendants, dotted, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

COUNTS = ("range", "reversed", "enumerate")  # loops over these count
COMPARES = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
NUMBERS = ("float", "int", "bool")


@dataclass(frozen=True)
class _Read:
    """One element that is asked for as a number: `node` is the whole expression, `element` what stands for the tensor's element."""

    node: cst.BaseExpression
    element: cst.BaseExpression

    @property
    def plain(self) -> cst.BaseExpression:
        """What is written anew: all of `x.item()`, but only the inner part of `float(x)`."""
        called = isinstance(self.node, cst.Call) and not isinstance(self.node.func, cst.Attribute)
        return self.element if called else self.node


def plain_numbers(edit: PlainNumbers, scene: Scene) -> tuple[Target, ...]:
    """The loop whose elements become numbers. Raises `UsageError` where a tensor may change in it, or may be none."""
    file, place = scene.source("does the work")
    reads = [read for call in file.calls if (read := _read(file, call)) is not None]
    reads += _compared(file)
    here = [read for read in reads if file.covers(file.statement(read.node) or read.node, place.line)]
    here = here or _of_the_loop_at(file, place.line, reads)
    loops = [loop for read in here for loop in file.loops_around(read.node)]
    here += [read for read in reads if read not in here and any(loop in loops[:1] for loop in file.loops_around(read.node))]
    edits: list[Splice] = []
    names: list[str] = []
    reasons: list[UsageError] = []
    for read in here:
        if any(each.start <= file.span(read.plain)[0] < each.end for each in edits):
            continue  # written with the others of its tensor
        try:
            name, more = _of_loop(scene, file, read, reads) if isinstance(read.element, cst.Name) else _of_index(scene, file, read, reads)
        except UsageError as bad:
            reasons.append(bad)
            continue
        edits, names = edits + [each for each in more if each not in edits], [*names, name]
    if not edits:
        raise reasons[0] if reasons else refuse(f"{place}: no element of a tensor is asked for as a number in a loop at this line")
    splices = tuple(edits)
    listed = ", ".join(dict.fromkeys(names))
    where = f"elements of {listed} at {file.location(here[0].node)}"
    return (Target(file.location(here[0].node), None, lambda wanted: splices, where, f"{listed} as numbers"),)


def _read(file: PythonFile, call: cst.Call) -> _Read | None:
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "item" and not call.args:
        element = call.func.value
    elif dotted(call.func) in NUMBERS and len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star:
        element = call.args[0].value
    else:
        return None
    return _Read(call, element) if isinstance(element, (cst.Name, cst.Subscript)) else None


def _compared(file: PythonFile) -> list[_Read]:
    """Elements that conditions compare with each other, or with whole numbers: of a fraction a tensor's element would be rounded first."""
    found = []
    for node in file.nodes:
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1 or not _is_asked(file, node):
            continue
        target = node.comparisons[0]
        sides = [node.left, target.comparator]
        plain = isinstance(target.operator, COMPARES) and all(isinstance(each, (cst.Subscript, cst.Integer)) for each in sides)
        found += [_Read(each, each) for each in sides if plain and isinstance(each, cst.Subscript) and _picked(file, each) is not None]
    return found


def _is_asked(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether only the truth of a comparison counts."""
    up = file.parent(node)
    while isinstance(up, cst.BooleanOperation) or (isinstance(up, cst.UnaryOperation) and isinstance(up.operator, cst.Not)):
        node, up = up, file.parent(up)
    return isinstance(up, (cst.If, cst.While, cst.IfExp)) and up.test is node


def _of_the_loop_at(file: PythonFile, line: int, reads: list[_Read]) -> list[_Read]:
    """Those of the innermost loop around a line that has some: where a turn ends, a sample may name another line of the loop."""
    loops = [node for node in file.nodes if isinstance(node, (cst.For, cst.While)) and file.covers(node, line)]
    for loop in sorted(loops, key=lambda each: file.lines_of(each)[0], reverse=True):
        found = [read for read in reads if file.inside(read.node, loop.body)]
        if found:
            return found
    return []


# Elements that a loop goes over ---------------------------------------------------------------------------------------------------


def _of_loop(scene: Scene, file: PythonFile, read: _Read, reads: list[_Read]) -> tuple[str, list[Splice]]:
    """`for x in tensor`, where each reading of `x` asks for its number."""
    assert isinstance(read.element, cst.Name)
    name, found = read.element.value, _source(file, read.element)
    if found is None:
        raise refuse(f"{file.location(read.node)}: `{name}` is no element that a loop goes over")
    loop, around, whole = found
    if not is_array(scene.project, file, whole):
        raise refuse(f"{file.location(read.node)}: `{file.text(whole)}` is not known to be a tensor")
    mine = [each for each in reads if isinstance(each.element, cst.Name) and each.element.value == name and file.inside(each.node, around)]
    asked = {id(each.element) for each in mine}
    others = [
        node
        for node in descendants(around, cst.Name)
        if node.value == name and id(node) not in asked and is_name(file, node) and not file.inside(node, loop.target)
    ]
    if others:
        raise refuse(f"{file.location(others[0])}: `{name}` is used here as more than a number")
    stays(scene, file, around, whole)
    end = file.outer_span(whole)[1]
    atom = isinstance(whole, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or bool(whole.lpar)
    start = file.outer_span(whole)[0]
    made = [] if atom else [Splice(file.path, start, start, "(")]
    made.append(Splice(file.path, end, end, f"{'' if atom else ')'}.flatten().tolist()"))
    return file.text(whole), made + [Splice(file.path, *file.span(each.plain), name) for each in mine if each.plain is each.node]


def _source(file: PythonFile, name: cst.Name) -> tuple[cst.For | cst.CompFor, cst.CSTNode, cst.BaseExpression] | None:
    """The loop that `name` is a variable of, all of it or of its comprehension, and what it is an element of, also through `zip`."""
    for up in file.ancestors(name):
        if isinstance(up, SCOPES):
            return None
        loops = [up] if isinstance(up, cst.For) else clauses(up)
        for loop in loops:
            if file.inside(name, loop.iter):
                continue
            whole = _element_of(file, loop.target, loop.iter, name.value)
            if whole is not None:
                return loop, up, whole
    return None


def _element_of(file: PythonFile, target: cst.BaseExpression, whole: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    if isinstance(target, cst.Name):
        return whole if target.value == name else None
    call = dotted(whole.func) if isinstance(whole, cst.Call) else None
    if not isinstance(target, cst.Tuple) or not isinstance(whole, cst.Call) or any(arg.star for arg in whole.args):
        return None
    parts = [element.value for element in target.elements]
    if call == "enumerate" and len(parts) == 2 and whole.args:
        return _element_of(file, parts[1], whole.args[0].value, name)
    plain = [arg.value for arg in whole.args if arg.keyword is None]
    if call == "zip" and len(parts) == len(plain):
        found = [_element_of(file, part, given, name) for part, given in zip(parts, plain, strict=True)]
        return next((each for each in found if each is not None), None)
    return None


# Elements that are picked by their indices ----------------------------------------------------------------------------------------


def _of_index(scene: Scene, file: PythonFile, read: _Read, reads: list[_Read]) -> tuple[str, list[Splice]]:
    """`tensor[i, j].item()` in a loop that counts `i` or `j` and leaves the tensor alone."""
    assert isinstance(read.element, cst.Subscript)
    base = _picked(file, read.element)
    if base is None:
        raise refuse(f"{file.location(read.node)}: `{file.text(read.element)}` is not picked by counted indices")
    node, indices = base
    name = file.text(node)
    if not is_array(scene.project, file, node) and not _measured(scene, file, node):
        raise refuse(f"{file.location(read.node)}: `{name}` is not known to be a tensor")
    loop = left_alone(scene, file, read.node, name)
    is_there(file, loop, node)
    mine = [each for each in reads if isinstance(each.element, cst.Subscript) and file.inside(each.node, loop.body)]
    picked = [(each, found) for each in mine if (found := _picked(file, each.element)) is not None and file.text(found[0]) == name]
    if {len(found[1]) for _, found in picked} != {len(indices)}:
        raise refuse(f"{file.location(read.node)}: elements of `{name}` are picked by different numbers of indices")
    fresh = re.findall(r"[A-Za-z_]\w*", name)[-1] + "_numbers"
    if fresh.encode() in file.raw:
        raise refuse(f"{file.location(read.node)}: the name {fresh} is taken")
    start = file.span(loop)[0]
    whole = f"{name}.{'flatten()' if len(indices) == 1 else f'reshape({name}.shape[:{len(indices)}])'}.tolist()"
    made = [Splice(file.path, start, start, f"{fresh} = {whole}{file.newline}{file.indent(loop)}")]
    for each, (_, own) in picked:
        made.append(Splice(file.path, *file.span(each.plain), fresh + "".join(f"[{index}]" for index in own)))
    return name, made


def _measured(scene: Scene, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether the function asks what only a tensor or an array tells, where the program has no sparse ones, which make no list."""
    sparse = next((where for word in ("sparse", "csr_", "csc_") for where in scene.project.parsed(word)), None)
    around = file.function_around(node) or file.module
    told = (each for each in descendants(around, cst.Attribute) if file.text(each.value) == file.text(node))  # type: ignore[attr-defined]
    return sparse is None and any(each.attr.value in ("shape", "ndim", "dim", "dtype") for each in told)  # type: ignore[attr-defined]


def _picked(file: PythonFile, node: cst.BaseExpression) -> tuple[cst.BaseExpression, list[str]] | None:
    """The tensor that `node` picks an element of, and the source of the indices; None where they are no plain counts."""
    indices: list[str] = []
    while isinstance(node, cst.Subscript):
        own = [part.slice.value if isinstance(part.slice, cst.Index) else None for part in node.slice]
        if len(own) == 1 and string_value(own[0]) is not None:
            break
        if any(each is None or not _counted(file, each) for each in own):
            return None
        indices = [file.text(each) for each in own if each is not None] + indices
        node = node.value
    return (node, indices) if indices and _named(node) else None


def _named(node: cst.BaseExpression) -> bool:
    """Whether `node` is a name, an attribute of one, or what one holds under a written key."""
    while isinstance(node, cst.Subscript):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index) or string_value(node.slice[0].slice.value) is None:
            return False
        node = node.value
    return dotted(node) is not None


def _counted(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` is a whole number: one written out, a loop's count, or a sum of such."""
    if isinstance(node, cst.Integer):
        return True
    if isinstance(node, cst.BinaryOperation):
        plain = isinstance(node.operator, (cst.Add, cst.Subtract))
        return plain and _counted(file, node.left) and _counted(file, node.right)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and _counted(file, node.expression)
    if not isinstance(node, cst.Name):
        return False
    for up in file.ancestors(node):
        if isinstance(up, SCOPES):
            return False
        for loop in [up] if isinstance(up, cst.For) else clauses(up):
            first = isinstance(loop.target, cst.Tuple) and loop.target.elements[0].value
            by = dotted(loop.iter.func) if isinstance(loop.iter, cst.Call) else None
            if isinstance(loop.target, cst.Name) and loop.target.value == node.value:
                return by in COUNTS and (by != "reversed" or _range(loop.iter))
            if isinstance(first, cst.Name) and first.value == node.value:
                return by == "enumerate"
    return False


def _range(call: cst.BaseExpression) -> bool:
    inner = call.args[0].value if isinstance(call, cst.Call) and call.args else None
    return isinstance(inner, cst.Call) and dotted(inner.func) == "range"
