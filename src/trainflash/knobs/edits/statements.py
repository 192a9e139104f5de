"""Text of whole statements: what takes some away, puts one beside, above or around others, and what comes with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import libcst as cst

from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.splices import Splice

WHOLE = (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.If)  # what goes as a whole


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


def called(file: PythonFile, function: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> str:
    """Source of a call of `function` with `arguments`, both written elsewhere in the file."""
    text = file.outer_text(function)
    simple = isinstance(function, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or bool(function.lpar)
    return f"{text if simple else f'({text})'}({', '.join(argument(file, arg) for arg in arguments)})"


def argument(file: PythonFile, given: cst.Arg) -> str:
    """Source of an argument without the comma behind it."""
    return file.text(given).rstrip().rstrip(",").rstrip()
