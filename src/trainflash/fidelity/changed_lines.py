"""Statements of the candidate that a comparison may have passed without running: changed ones, and what a changed condition decides about.

Read from the sources alone. A statement counts as a whole: of `x = a if b else c`, of a lambda and of a comprehension only the line that
holds them is asked about. Left out is what tells nothing about the training: branches that only raise, end the program, warn or log; what
type checkers alone read; the block below `if __name__ == "__main__"` of a file that the command does not name. Where the program was
compared whole, statements that it cannot have passed by are left out too, so that most changes need no further run.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

from trainflash.fidelity import reuse
from trainflash.schema import Command, Sandbox

_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_SAYS_ONLY = frozenset({"print", "warn", "warning", "debug", "info", "error", "exception", "critical", "log", "write"})
_LEAVES = frozenset({"exit", "_exit", "quit", "abort"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CONDITIONS = (ast.If, ast.For, ast.AsyncFor, ast.While)
_BELOW = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
_LATER = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # what is in these may not run

Span = tuple[int, int]  # first and last line


@dataclass(frozen=True)
class Statement:
    """Lines that are shown, and the lines of which one must run before they count as seen: those of a new function are its body's.

    Lines to be watched are those of `Source.text`, where there is one.
    """

    shown: Span
    watched: Span
    function: int | None  # first line of the innermost function around it, its decorators counted; None: the module's own code


@dataclass(frozen=True)
class Source:
    """One changed file, by its path from the project's folder, with the statements to be asked about."""

    path: str
    statements: tuple[Statement, ...]
    code_lines: frozenset[int]  # lines that hold code at all
    text: bytes | None = None  # the file as the run must have it, where it is another than the candidate's

    def ranges(self, unseen: Iterable[Statement]) -> tuple[str, ...]:
        """`train.py:71-73` for each stretch of statements that no other code parts."""
        merged: list[list[int]] = []
        for first, last in sorted({statement.shown for statement in unseen}):
            if merged and not self.code_lines.intersection(range(merged[-1][1] + 1, first)):
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        return tuple(f"{self.path}:{first}" if first == last else f"{self.path}:{first}-{last}" for first, last in merged)


def find(sandbox: Sandbox, command: Command, *, whole: bool) -> tuple[Source, ...]:
    """Files of the candidate that hold such statements; () where there are none, or where git cannot compare the checkouts.

    `whole`: both sides were compared from start to end.
    """
    root = Path(sandbox.worktree, sandbox.prefix)
    found = []
    for name in _changed_files(sandbox):
        old, new = Path(sandbox.baseline, name), Path(sandbox.worktree, name)
        if new.suffix == ".py" and new.is_file() and not new.is_symlink():
            path = os.path.relpath(new, root)
            source = read(path, new.read_bytes(), _changed_lines(old, new), main=_is_named(path, sandbox, command), whole=whole)
            if source is not None and source.statements:
                found.append(source)
    return tuple(found)


def read(path: str, text: bytes, changed: frozenset[int], *, main: bool, whole: bool) -> Source | None:
    """What is to be asked about one file whose lines `changed` differ; None where it is no Python that can be compiled here."""
    try:
        new, origin = _unfolded(text, changed)
        tree = ast.parse(new)
        code = compile(new, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    lines = frozenset(_lines_of(code))
    sure = _Certain(tree).lines if whole and main else frozenset()
    asked = _Asked(frozenset(line for line, old in enumerate(origin, start=1) if old in changed), main).of(tree)
    found = [each for each in asked if lines.intersection(_span(each.watched)) and each.watched not in sure]
    statements = tuple(dict.fromkeys(replace(each, shown=(origin[each.shown[0] - 1], origin[each.shown[1] - 1])) for each in found))
    return Source(path, statements, frozenset(origin[line - 1] for line in lines), new if new != text else None)


def _unfolded(text: bytes, changed: frozenset[int]) -> tuple[bytes, list[int]]:
    """The text with `if x: y` in two lines wherever it has changed, and from which line each of its lines comes.

    Lines are what a trace sees: what one line decides and does cannot be told apart.
    """
    lines = text.splitlines(keepends=True)
    cuts = {line: cut for line, cut in _folds(ast.parse(text), lines) if line in changed}
    new: list[bytes] = []
    origin: list[int] = []
    for number, line in enumerate(lines, start=1):
        at, margin = cuts.get(number, (0, b""))
        parts = [line[:at].rstrip() + b"\n", margin + line[at:]] if at else [line]
        new += parts
        origin += [number] * len(parts)
    return b"".join(new), origin


def _folds(tree: ast.Module, lines: list[bytes]) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Lines on which a block begins beside what decides about it: the line, the column of the block, its margin on a line of its own."""
    for node in ast.walk(tree):
        for name in _BELOW & set(node._fields):
            first = next(iter(getattr(node, name) or ()), None) if isinstance(getattr(node, name), list) else None
            if isinstance(first, ast.stmt) and lines[first.lineno - 1][: first.col_offset].rstrip().endswith(b":"):
                line = lines[getattr(node, "lineno", first.lineno) - 1]
                yield first.lineno, (first.col_offset, line[: len(line) - len(line.lstrip())] + b"    ")


class _Asked:
    """Walks a tree with what is known of the blocks around a statement."""

    def __init__(self, changed: frozenset[int], main: bool) -> None:
        self._changed, self._main = changed, main

    def of(self, tree: ast.Module) -> Iterator[Statement]:
        yield from self._block(tree.body, None, decided=False)

    def _block(self, body: list[ast.stmt], function: int | None, *, decided: bool) -> Iterator[Statement]:
        """`decided`: what decides whether this block runs has changed."""
        for node in body:
            head = _head(node)
            touched = self._touches(head)
            if (touched or decided) and not _says_nothing(node):
                yield Statement(head, head, function)
            yield from self._within(node, head, function, touched)

    def _within(self, node: ast.stmt, head: Span, function: int | None, touched: bool) -> Iterator[Statement]:
        if isinstance(node, _FUNCTIONS):
            if not _quiet(node.body):
                if touched:
                    yield Statement(head, _body(node), head[0])
                yield from self._block(node.body, head[0], decided=False)
            return
        for part, decides in self._blocks(node, touched):
            if not (isinstance(node, _CONDITIONS) and _quiet(part)):
                yield from self._block(part, function, decided=decides)

    def _blocks(self, node: ast.stmt, touched: bool) -> Iterator[tuple[list[ast.stmt], bool]]:
        """The blocks of a statement, each with whether its condition has changed."""
        if isinstance(node, ast.If) and (_for_type_checkers(node.test) or (_is_main_guard(node.test) and not self._main)):
            yield node.orelse, False
            return
        decides = touched and isinstance(node, _CONDITIONS)
        for name in ("body", "orelse", "finalbody"):
            yield getattr(node, name, []), decides
        for handler in getattr(node, "handlers", []):
            if not _quiet(handler.body):
                yield handler.body, self._touches(_head(handler))
        for case in getattr(node, "cases", []):
            if not _quiet(case.body):
                yield case.body, touched or self._touches((case.pattern.lineno, _end(case.guard or case.pattern)))

    def _touches(self, span: Span) -> bool:
        return not self._changed.isdisjoint(_span(span))


class _Certain:
    """Statements of the file that the command names which must have run where the program came to its own end.

    Those of the module itself, and of functions that these call by their names; not what lies in a loop or a branch, and nothing after
    a branch that may leave.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.lines: set[Span] = set()
        self._functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_plain(node)}
        self._walk(tree.body)

    def _walk(self, body: list[ast.stmt]) -> bool:
        """False: what follows may have been left out."""
        for node in body:
            self.lines.add(_head(node))
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                continue
            if (isinstance(node, ast.If) and _is_main_guard(node.test)) or _is_plain_with(node):
                if not self._walk(node.body):  # type: ignore[attr-defined]
                    return False
            elif not all(self._call(name) for name in _called(node)) or _may_leave(node):
                return False
        return True

    def _call(self, name: str) -> bool:
        function = self._functions.pop(name, None)
        if function is None:
            return True
        self.lines.add(_body(function))
        return self._walk(function.body)


def _is_plain(node: ast.FunctionDef) -> bool:
    """A call of it runs its body."""
    return not node.decorator_list and not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))


def _is_plain_with(node: ast.stmt) -> bool:
    return isinstance(node, ast.With) and not any("suppress" in ast.dump(item.context_expr) for item in node.items)


def _may_leave(node: ast.stmt) -> bool:
    inside = [each for each in ast.walk(node) if each is not node]
    return any(isinstance(each, ast.Return) or (isinstance(each, ast.Call) and _name(each.func) in _LEAVES) for each in inside)


def _called(node: ast.AST) -> Iterator[str]:
    """Names that a statement without blocks calls for certain."""
    for child in ast.iter_child_nodes(node) if not hasattr(node, "body") else ():
        if not isinstance(child, _LATER):
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
                yield child.func.id
            yield from _called(child)


def _quiet(body: list[ast.stmt]) -> bool:
    """A branch that does nothing but raise, end the program, warn or log."""
    return bool(body) and all(isinstance(node, ast.Raise) or _says_nothing(node) or _is_quiet_call(node) for node in body)


def _is_quiet_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value.func) in _SAYS_ONLY | _LEAVES


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _for_type_checkers(test: ast.expr) -> bool:
    return _name(test) == "TYPE_CHECKING"


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and "'__name__'" in ast.dump(test) and "'__main__'" in ast.dump(test)


def _head(node: ast.stmt | ast.ExceptHandler) -> Span:
    """The lines of a statement without the blocks below it, its decorators counted."""
    fields = dict(ast.iter_fields(node))
    if not _BELOW & fields.keys():
        return node.lineno, _end(node)
    own = [each for name in fields.keys() - _BELOW for each in (fields[name] if isinstance(fields[name], list) else [fields[name]])]
    parts = [part for each in own if isinstance(each, ast.AST) for part in ast.walk(each) if hasattr(part, "lineno")]
    return min([node.lineno, *(part.lineno for part in parts)]), max([node.lineno, *(_end(part) for part in parts)])


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Span:
    return node.body[0].lineno, _end(node)


def _end(node: Any) -> int:
    return node.end_lineno or node.lineno


def _span(span: Span) -> range:
    return range(span[0], span[1] + 1)


def _lines_of(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _lines_of(each)


def _is_named(path: str, sandbox: Sandbox, command: Command) -> bool:
    """Whether the command starts this file: by its path, or as `-m package.module`."""
    module, file = os.path.splitext(path)[0].replace(os.sep, "."), os.path.join(sandbox.project, path)
    words = (os.path.normpath(os.path.join(sandbox.project, command.cwd, word)) for word in command.argv)
    return file in words or any(module in (word, f"{word}.__main__") for word in command.argv)


def _changed_files(sandbox: Sandbox) -> list[str]:
    """Paths, from the checkouts' roots, of files that the candidate's holds otherwise, or alone."""
    base = _git(sandbox.baseline, "rev-parse", "HEAD").strip().decode()
    if not base:
        return []
    tracked = _git(sandbox.worktree, "diff", "--name-only", "--no-renames", "-z", base, "--", "*.py")
    alone = _git(sandbox.worktree, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")
    return sorted({os.fsdecode(name) for name in (tracked + alone).split(b"\0") if name})


def _changed_lines(old: Path, new: Path) -> frozenset[int]:
    """Lines of `new` that are not in `old`, from 1."""
    before = str(old) if old.is_file() else os.devnull
    options = ("--no-index", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--text", "--ignore-cr-at-eol")
    hunks = _HUNK.findall(_git(str(new.parent), "diff", *options, "--", before, str(new)))
    return frozenset(line for first, count in hunks for line in range(int(first), int(first) + int(count or 1)))


def _git(folder: str, *words: str) -> bytes:
    return reuse.git(folder, *words).out
