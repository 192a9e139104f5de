"""Edits of whole statements: insert one behind the imports, change an assigned setting, take a call away, unwrap a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import libcst as cst

from trainflash.knobs.edits import imports, left_out
from trainflash.knobs.edits.network import drawing, recomputed
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import collected
from trainflash.knobs.kinds import AssignedAttribute, InsertCall, RemoveCall, UnwrapCall
from trainflash.knobs.project import Project
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import given_to, literal, refuse, spelled_value
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole, string_value, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import loading
from trainflash.schema import Location

WHOLE = (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.If)  # what goes as a whole


def insert_call(edit: InsertCall, scene: Scene) -> tuple[Target, ...]:
    """The place behind the imports of the entry script, or behind what decides it. Raises `UsageError` when the program does so already."""
    project = scene.project
    if project.entry is None:
        raise refuse("the script that the command starts cannot be told", "name a Python file in the command")
    for name in (edit.absent, *edit.rivals):
        for other, node in _mentions(scene, name):
            raise refuse(f"{other.location(node)}: {name} is set here already")
    decides = scene.facts.get(edit.behind) if edit.behind is not None else None
    told = decides if project.owns(decides) else None
    file = project.python(project.entry if told is None else told.file)
    tail = edit.absent.removeprefix(f"{edit.module}.")
    spelled, needed = imports.reach(file, edit.module, tail)
    if needed:
        imports.loads_nothing_early(project, edit.module)
    current = scene.facts.get(edit.default_fact) if edit.default_fact is not None else None
    current = edit.default if current is None else current
    whole = None if told is None else _deciding(file, told)
    offset = imports.after_imports(file, spelled)

    def write(value: Any) -> tuple[Splice, ...]:
        statement = edit.statement.format(value=spelled_value(value)).replace(edit.absent, spelled, 1)
        if whole is not None:
            return (*needed, behind(file, whole, file.indent(whole), statement))
        separator = "" if file.raw[:offset].endswith(b"\n") or not offset else file.newline
        return (*needed, Splice(file.path, offset, offset, f"{separator}{file.newline}{statement}{file.newline}"))

    if told is not None:
        return (Target(told, current, write, f"{edit.absent} behind {told}, which sets it"),)
    line = file.raw.count(b"\n", 0, offset)
    return (Target(Location(file.path, max(1, line)), current, write, f"{edit.absent} after the imports of {file.path}"),)


def _deciding(file: PythonFile, place: Location) -> cst.CSTNode:
    """The statement at `place`, or the outermost loop of its function around it."""
    found = [node for node in file.nodes if isinstance(node, cst.SimpleStatementLine) and file.covers(node, place.line)]
    if not found or isinstance(sole(found[-1]), cst.Return):
        raise refuse(f"{place}: what sets it is no statement behind which another could stand")
    return [found[-1], *file.loops_around(found[-1])][-1]


def assigned_attribute(edit: AssignedAttribute, scene: Scene) -> tuple[Target, ...]:
    """The one place where the program assigns to the attribute. Raises `UsageError` when there is none, or more than one."""
    found = [(file, node, value) for file, node, value in _assigned(scene, edit.attribute)]
    name = edit.attribute.split(".")[-1]
    if not found:
        raise refuse(f"no call of {name}: the program does not set {edit.attribute}")
    if len(found) > 1:
        raise refuse(f"{edit.attribute} is set at several places: {', '.join(str(file.location(node)) for file, node, _ in found[:4])}")
    file, node, value = found[0]
    here = file.location(node)
    source = sources.Resolver(scene.project).source(file, value) if value is not None else None
    if source is None or source.write is None or source.readers:
        raise refuse(f"{here}: what is assigned to {edit.attribute} is not its own: `{file.text(value if value is not None else node)}`")
    return (Target(here, source.value, source.write, f"{edit.attribute}, from {source.shown}"),)


def _mentions(scene: Scene, name: str) -> list[tuple[PythonFile, cst.CSTNode]]:
    """Calls of `name` and assignments to it, in the whole program."""
    found: list[tuple[PythonFile, cst.CSTNode]] = []
    for file in scene.project.parsed(name.split(".")[-1]):
        found += [(file, call) for call in file.calls if file.full_name(call.func) == name]
    return found + [(file, node) for file, node, _ in _assigned(scene, name)]


def _assigned(scene: Scene, name: str) -> list[tuple[PythonFile, cst.CSTNode, cst.BaseExpression | None]]:
    """Assignments to the dotted `name`, alone or among others, also by `setattr` and as an argument of a context, with what is assigned."""
    owner, _, last = name.rpartition(".")
    found: list[tuple[PythonFile, cst.CSTNode, cst.BaseExpression | None]] = []
    for file in scene.project.parsed(last):
        for node in file.nodes:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    found += [(file, node, value) for part, value in _pairs(target.target, node.value) if _full(file, part) == name]
        for call in file.calls:
            args = call.args
            if (
                dotted(call.func) == "setattr"
                and len(args) == 3
                and string_value(args[1].value) == last
                and _full(file, args[0].value) == owner
            ):
                found.append((file, call, args[2].value))
            elif _full(file, call.func) == f"{owner}.flags" and (given := keyword(call, last)) is not None:
                found.append((file, call, given.value))
    return found


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Each single target and what it is given; None where that is not written out."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return [(target, value)]
    written = isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements)
    values = [each.value for each in value.elements] if written else [None] * len(target.elements)  # type: ignore[attr-defined]
    return [(part.value, given) for part, given in zip(target.elements, values, strict=True)]


def _full(file: PythonFile, node: cst.CSTNode) -> str | None:
    """The dotted name with imports resolved, and a name of the file's own that stands for a module."""
    full = file.full_name(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
    first, dot, rest = (full or "").partition(".")
    stands = [each for each in given_to(file.module, first) if dotted(each) is not None] if first and first not in file.imported else []
    return f"{file.full_name(stands[0])}{dot}{rest}" if len(stands) == 1 else full


def remove_call(edit: RemoveCall, scene: Scene) -> tuple[Target, ...]:
    """The statement that is nothing but the call. Raises `UsageError` where its value is used."""
    file, call = the_call(edit, scene)
    here = file.location(call)
    if any(name.endswith(recomputed.SWITCHES) for name in edit.calls):
        recomputed.whole(scene.project)
    if any(name.endswith(".synchronize") for name in edit.calls):
        loading.waited_for(scene.project)
        left_out.nobody_is_told(scene.project, file, call)
    if any(name.endswith(".empty_cache") for name in edit.calls):
        left_out.nobody_asks_for_free_memory(scene.project)
    left_out.arguments_do_nothing(scene.project, file, call)
    if collected.COLLECT in edit.calls:
        collected.nobody_needs_collections(scene.project)
    if edit.instead is not None and _counts(scene.project, file, call):
        splices: tuple[Splice, ...] = (Splice(file.path, *file.span(call), edit.instead),)
        risk, because = "cadence", f"the number that it found is shown as {edit.instead} then"
    else:
        splices, risk, because = taken_away(file, call), None, ""
    if left_out.TRACES in edit.calls and left_out.asks_what_is_traced(scene.project, call):
        risk, because = "cadence", "what is shown as traced is 0 then"
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "taken away", risk, because),)


def _counts(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether the call's value is only shown, or added up under a key whose value is only shown."""
    for up in file.ancestors(call):
        if isinstance(up, (cst.Assign, cst.AugAssign)):
            return all(collected.only_shown(project, file, each) for each in targets_of(up))
        if isinstance(up, cst.Call) and file.full_name(up.func) == "print":
            return True
        if not isinstance(up, (cst.BinaryOperation, cst.BaseFormattedStringContent, cst.FormattedString, cst.Arg)):
            return False
        if isinstance(up, cst.BinaryOperation) and not isinstance(up.operator, (cst.Add, cst.Multiply)):
            return False
    return False


def taken_away(file: PythonFile, call: cst.Call, bound: cst.BaseExpression | None = None) -> tuple[Splice, ...]:
    """The edit that takes the statement away that is nothing but `call`, or gives it to `bound` alone.

    Raises `UsageError` where its value is used.
    """
    expression = file.parent(call)
    if isinstance(expression, cst.Assign) and all(target.target is bound or dotted(target.target) == "_" for target in expression.targets):
        small: cst.CSTNode = expression
    elif isinstance(expression, cst.Expr) or (isinstance(expression, cst.Assert) and expression.test is call):
        small = expression
    else:
        raise refuse(f"{file.location(call)}: what `{file.text(call)}` returns is used")
    return without(file, [small])


def long_text(file: PythonFile, node: cst.CSTNode) -> cst.CSTNode | None:
    """A text inside `node` that goes over several lines, so that moving its lines to the right would change it; None without one."""
    texts = descendants(node, (cst.SimpleString, cst.FormattedString))
    return next((text for text in texts if len(set(file.lines_of(text))) > 1), None)


def under(file: PythonFile, header: str, start: int, end: int, indent: str) -> tuple[Splice, ...]:
    """What stands from `start` to `end`, the first of it indented by `indent`, as the block below the new line `header`."""
    deeper = file.module.default_indent
    splices = [Splice(file.path, start, start, f"{header}{file.newline}{indent}{deeper}")]
    at = file.raw.find(b"\n", start, end)
    while at >= 0:
        if file.raw[at + 1 : at + 2] not in (b"\n", b"\r", b""):
            splices.append(Splice(file.path, at + 1, at + 1, deeper))
        at = file.raw.find(b"\n", at + 1, end)
    return tuple(splices)


def without(file: PythonFile, smalls: Sequence[cst.CSTNode]) -> tuple[Splice, ...]:
    """The edit that takes simple statements away together.

    Of a block that loses all of them `pass` stays; a plain `if` without else, whose condition only reads, goes with its block. Raises
    `UsageError` for what is no statement of its own.
    """
    gone = {id(small) for small in smalls}
    lines = {id(line): line for small in smalls if (line := file.parent(small)) is not None}.values()
    for line in lines:
        if not isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            raise refuse(f"{file.location(smalls[0])}: is part of another statement")
    gone |= {id(line) for line in lines if all(id(each) in gone for each in line.body)}  # type: ignore[attr-defined]
    empty = _emptied(file, lines, gone)
    splices = [splice for line in lines if id(line) not in gone for splice in _parts(file, line, gone)]  # type: ignore[arg-type]
    for whole in sorted((each for each in file.nodes if id(each) in gone and isinstance(each, WHOLE)), key=lambda each: file.span(each)[0]):
        if any(id(up) in gone for up in file.ancestors(whole)):
            continue  # goes with the `if` around it
        start, end = file.span(whole)
        left = next((block for block in empty if whole is block or whole is block.body[0]), None)
        splices.append(Splice(file.path, start, end, "pass") if left is not None else whole_lines(file, start, end))
    return tuple(splices)


def _emptied(file: PythonFile, lines: Iterable[cst.CSTNode], gone: set[int]) -> list[cst.BaseSuite]:
    """The blocks that lose all their statements and stay; an `if` that goes with its block is added to `gone`."""
    todo, empty = [line if isinstance(line, cst.SimpleStatementSuite) else file.parent(line) for line in lines if id(line) in gone], []
    while todo:
        block = todo.pop(0)
        if not isinstance(block, cst.BaseSuite) or block in empty or not all(id(each) in gone for each in block.body):
            continue
        guard = file.parent(block)
        around = file.parent(guard) if _goes_with_its_block(file, guard) else None
        if isinstance(around, (cst.IndentedBlock, cst.Module)) and len(around.body) > 1:
            gone.add(id(guard))
            todo.append(around)
        else:
            empty.append(block)
    return empty


def _goes_with_its_block(file: PythonFile, guard: cst.CSTNode | None) -> bool:
    plain = isinstance(guard, cst.If) and guard.orelse is None and not isinstance(file.parent(guard), (cst.If, cst.Else))
    return plain and _reads(guard.test)  # type: ignore[union-attr]


def _parts(file: PythonFile, line: cst.SimpleStatementLine | cst.SimpleStatementSuite, gone: set[int]) -> Iterator[Splice]:
    """Takes those of several statements on one line away that are in `gone`, others stay."""
    body = list(line.body)
    stay = [number for number, each in enumerate(body) if id(each) not in gone]
    for before, number in pairwise((-1, *stay)):
        if number - before > 1:
            yield Splice(file.path, file.span(body[before + 1])[0], file.span(body[number])[0], "")
    if stay[-1] + 1 < len(body):
        last = body[stay[-1]]
        yield Splice(file.path, file.span(last)[0] + len(_bare(file, last)), file.span(body[-1])[1], "")


def _bare(file: PythonFile, node: cst.CSTNode) -> bytes:
    """Source of a small statement without the semicolon behind it."""
    start, end = file.span(node)
    return file.raw[start:end].rstrip().rstrip(b";").rstrip()


def _reads(test: cst.BaseExpression) -> bool:
    return not any(True for _ in descendants(test, (cst.Call, cst.Await, cst.NamedExpr)))


def whole_lines(file: PythonFile, start: int, end: int) -> Splice:
    """Takes away the lines from `start` to `end`, what stands behind on the last one included."""
    first = file.raw.rfind(b"\n", 0, start) + 1
    last = file.raw.find(b"\n", end)
    return Splice(file.path, first, len(file.raw) if last < 0 else last + 1, "")


def behind(file: PythonFile, last: cst.CSTNode, indent: str, text: str) -> Splice:
    """`text` as a line of its own behind the line on which `last` ends."""
    end = file.raw.find(b"\n", file.span(last)[1])
    end = len(file.raw) if end < 0 else end - file.raw[:end].endswith(b"\r")
    return Splice(file.path, end, end, f"{file.newline}{indent}{text}")


def top(file: PythonFile, line: cst.CSTNode) -> int:
    """The offset at which `line` begins, with the comments above it."""
    comments = [each.comment for each in getattr(line, "leading_lines", ()) if each.comment is not None]
    return file.span(comments[0] if comments else line)[0]


def kept_comments(file: PythonFile, splices: Iterable[Splice]) -> list[Splice]:
    """`splices`. Raises `UsageError` where a comment would go with what one replaces."""
    found = list(splices)
    for each in found:
        if file.raw[each.start : each.end].decode("utf-8").count("#") > each.text.count("#"):
            raise refuse(f"{file.path}: a comment stands where its place would be gone")
    return found


def above_outermost(file: PythonFile, node: cst.CSTNode) -> int:
    """The offset in front of the module's statement that holds `node`, its decorators and the comment about it."""
    outer = next(up for up in (node, *file.ancestors(node)) if file.parent(up) is file.module)
    first = outer.decorators[0] if isinstance(outer, (cst.FunctionDef, cst.ClassDef)) and outer.decorators else outer
    start = file.raw.rfind(b"\n", 0, file.span(first)[0]) + 1
    while start and file.raw[: start - 1].rpartition(b"\n")[2].startswith(b"#"):
        start = file.raw.rfind(b"\n", 0, start - 1) + 1
    return start


def above_in_module(file: PythonFile, node: cst.CSTNode, text: str) -> Splice:
    """A function or class in front of the module's statement that holds `node`, two empty lines away from what stands above it."""
    above = above_outermost(file, node)
    before = file.raw[:above].replace(b"\r", b"")
    newlines = len(before) - len(before.rstrip(b"\n"))
    return Splice(file.path, above, above, (max(0, 3 - newlines) * "\n" + text).replace("\n", file.newline))


def decorating(file: PythonFile, node: cst.CSTNode, text: str) -> Splice:
    """`@text` on a line of its own in front of `node`: a function, or one of its decorators."""
    start = file.span(node)[0]
    return Splice(file.path, start, start, f"@{text}{file.newline}{file.indent(node)}")


def _is_sequential(file: PythonFile, call: cst.Call, target: cst.BaseExpression) -> None:
    """Raises `UsageError` unless `target` is assigned a `torch.nn.Sequential` and nothing else: a list cannot be called."""
    name, owner = dotted(target), file.class_around(call) or file.module
    made = given_to(owner if (name or "").startswith("self.") else file.module, name) if name is not None else []
    if not made or not all(isinstance(each, cst.Call) and file.full_name(each.func) == "torch.nn.Sequential" for each in made):
        raise refuse(f"{file.location(call)}: `{file.text(target)}` is not known to be a torch.nn.Sequential")


def _without_partial(file: PythonFile, target: cst.BaseExpression, arguments: list[cst.Arg]) -> tuple[cst.BaseExpression, list[cst.Arg]]:
    """`partial(f, a)` called with `b` is `f(a, b)`; keywords of the partial stay in it, because later ones would replace them."""
    bound = target.args if isinstance(target, cst.Call) and file.full_name(target.func) == "functools.partial" else ()
    if not bound or any(arg.keyword is not None or arg.star for arg in bound):
        return target, arguments
    return bound[0].value, [*bound[1:], *arguments]


def unwrap_call(edit: UnwrapCall, scene: Scene) -> tuple[Target, ...]:
    """`wrapper(function, …)`; raises `UsageError` where the arguments cannot be told apart."""
    file, call = the_call(edit, scene)
    here = file.location(call)
    own = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in edit.options]
    rest = [arg for arg in call.args if arg not in own]
    if not rest or rest[0].keyword is not None or rest[0].star:
        raise refuse(f"{here}: `{dotted(call.func)}` is called without a function in front")
    if any(arg.star == "**" for arg in rest) and not own:
        raise refuse(f"{here}: `{dotted(call.func)}` is called with unpacked arguments, some of which may be its own")
    for arg in rest:
        if arg.keyword is not None and arg.keyword.value in edit.refused:
            raise refuse(f"{here}: {arg.keyword.value} does more than `{dotted(call.func)}` alone")
    for arg in own:
        if literal(arg.value) not in (True, False, None) and not isinstance(arg.value, (cst.Name, cst.Attribute)):
            raise refuse(f"{here}: `{file.text(arg)}` may do more than switch")
    keeps = keyword(call, "preserve_rng_state")
    if keeps is not None and literal(keeps.value) is not True:
        drawing.nothing(scene.project)
    target, arguments = rest[0].value, rest[1:]
    if edit.segments:
        _is_sequential(file, call, target)
        if len(arguments) != 2 or any(arg.keyword is not None or arg.star for arg in arguments):
            raise refuse(f"{here}: `{dotted(call.func)}` is not given its number of parts and one input")
        arguments = arguments[1:]
    target, arguments = _without_partial(file, target, arguments)
    if set(edit.calls) & set(recomputed.WRAPPERS):
        recomputed.counts_nothing(scene.project, file, target)
        if recomputed.reentrant(scene.project, file, call):
            recomputed.carry_gradients(scene.project, file, call, list(arguments))
    splice = Splice(file.path, *file.span(call), called(file, target, arguments))
    return (Target(here, None, lambda value: (splice,), f"`{dotted(call.func)}` at {here}", "unwrapped"),)


def without_element(file: PythonFile, element: cst.Element) -> tuple[Splice, ...]:
    """The edit that takes an element out of a list as it is written. Raises `UsageError` for a tuple, whose length may mean something."""
    owner = file.parent(element)
    if not isinstance(owner, (cst.List, cst.Set)):
        raise refuse(f"{file.location(element)}: `{file.text(element)}` stands in no list")
    at = next(number for number, each in enumerate(owner.elements) if each is element)
    start, end = file.outer_span(element.value)
    if at:
        start = file.outer_span(owner.elements[at - 1].value)[1]
    elif len(owner.elements) > 1:
        end = file.outer_span(owner.elements[1].value)[0]
    return (Splice(file.path, start, end, ""),)


def called(file: PythonFile, function: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> str:
    """Source of a call of `function` with `arguments`, both written elsewhere in the file."""
    text = file.outer_text(function)
    simple = isinstance(function, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or bool(function.lpar)
    return f"{text if simple else f'({text})'}({', '.join(argument(file, arg) for arg in arguments)})"


def argument(file: PythonFile, given: cst.Arg) -> str:
    """Source of an argument without the comma behind it."""
    return file.text(given).rstrip().rstrip(",").rstrip()
