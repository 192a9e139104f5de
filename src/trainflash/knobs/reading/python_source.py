"""One Python file of the owner's, parsed by LibCST: where its nodes lie in the bytes, what its names mean, which calls it makes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from libcst import metadata

from trainflash.errors import UsageError
from trainflash.knobs.reading import spans, tree
from trainflash.knobs.reading.tree import descendants
from trainflash.schema import Location

BOM = b"\xef\xbb\xbf"
LOOPS = (cst.For, cst.While)
ASSIGNS = (cst.Assign, cst.AugAssign, cst.AnnAssign)
SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
BINDING = (
    *(cst.Param, cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.AsName, cst.Element),
    *(cst.StarredElement, cst.FunctionDef, cst.ClassDef, cst.MatchAs, cst.MatchStar, cst.Global, cst.NameItem),
)  # what may bind one of the names directly in it
LOCAL = "<local>"
NEWLINE = re.compile(rb"\r\n|\n|\r")
HANDS_OFF = "this file is left alone; make the change by hand"


@dataclass(frozen=True, eq=False)
class PythonFile:
    """`raw` parsed. Raises `UsageError` on construction by `parse` when it is no Python that LibCST reads, or not UTF-8."""

    path: str  # relative to the project
    raw: bytes
    wrapper: metadata.MetadataWrapper

    @property
    def module(self) -> cst.Module:
        return self.wrapper.module

    @cached_property
    def _spans(self) -> dict[int, tuple[int, int]]:
        return spans.spans(self.module)

    @cached_property
    def _shift(self) -> int:
        return len(BOM) if self.raw.startswith(BOM) else 0

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in NEWLINE.finditer(self.raw))]

    @cached_property
    def _tree(self) -> tree.Tree:
        return tree.keep(self, self.module)

    @cached_property
    def _scopes(self):
        return self.wrapper.resolve(metadata.ScopeProvider)

    @cached_property
    def newline(self) -> str:
        return self.module.default_newline

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """First byte and the byte after the last of `node`, parentheses around an expression not counted."""
        start, end = self._spans[id(node)]
        return start + self._shift, end + self._shift

    def outer_span(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Like `span`, with the parentheses that belong to the expression."""
        start, end = self.span(node)
        left, right = getattr(node, "lpar", ()), getattr(node, "rpar", ())
        for paren in (*left, *right):
            a, b = self.span(paren)
            start, end = min(start, a), max(end, b)
        return start, end

    def text(self, node: cst.CSTNode) -> str:
        """Source text of `node`."""
        start, end = self.span(node)
        return self.raw[start:end].decode("utf-8")

    def outer_text(self, node: cst.BaseExpression) -> str:
        """Like `text`, with the parentheses that belong to the expression."""
        return self.raw[slice(*self.outer_span(node))].decode("utf-8")

    def lines_of(self, node: cst.CSTNode) -> tuple[int, int]:
        """First and last line, from 1."""
        start, end = self.span(node)
        return bisect_right(self._line_starts, start), bisect_right(self._line_starts, end)

    def statement(self, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
        """The line of simple statements that `node` is, or lies in."""
        return next((up for up in (node, *self.ancestors(node)) if isinstance(up, cst.SimpleStatementLine)), None)

    def covers(self, node: cst.CSTNode, line: int) -> bool:
        """Whether `line` is one of those that `node` stands on."""
        first, last = self.lines_of(node)
        return first <= line <= last

    def location(self, node: cst.CSTNode) -> Location:
        """Where `node` begins, with the name of the function around it."""
        around = self.function_around(node)
        return Location(self.path, self.lines_of(node)[0], around.name.value if around is not None else "")

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around `node`; None for the module."""
        found = self._place(node)
        return self._tree.nodes[self._tree.parents[found]] if found else None

    def _place(self, node: cst.CSTNode) -> int | None:
        own = self._tree  # whose nodes are known from now on
        known, number = tree.place(node) or (None, None)
        return number if known is own else None

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around `node`, innermost first."""
        up = self.parent(node)
        while up is not None:
            yield up
            up = self.parent(up)

    def function_around(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost function that `node` lies in."""
        return next((up for up in self.ancestors(node) if isinstance(up, cst.FunctionDef)), None)

    def class_around(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The innermost class that `node` lies in, in a method or not."""
        return next((up for up in self.ancestors(node) if isinstance(up, cst.ClassDef)), None)

    def loops_around(self, node: cst.CSTNode) -> Iterator[cst.For | cst.While]:
        """Loops of the same function around `node`, innermost first."""
        for up in self.ancestors(node):
            if isinstance(up, SCOPES):
                return
            if isinstance(up, LOOPS):
                yield up  # type: ignore[misc]

    def inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether `outer` is `node` or lies around it."""
        here, there = self._place(node), self._place(outer)
        return node is outer or (here is not None and there is not None and there <= here < self._tree.ends[there])

    def scope(self, node: cst.CSTNode) -> metadata.Scope | None:
        """The scope that names in `node` are looked up in."""
        for at in (node, *self.ancestors(node)):
            found = self._scopes.get(at)
            if found is not None:
                return found
        return None

    @cached_property
    def nodes(self) -> tuple[cst.CSTNode, ...]:
        """All nodes in the order of the source, without white space and comments."""
        return tuple(self._tree.nodes)

    def each(self, kinds: type | tuple[type, ...]) -> Iterator[cst.CSTNode]:
        """All nodes of `kinds`, in the order of the source."""
        return self._tree.within(0, kinds)

    @cached_property
    def calls(self) -> tuple[cst.Call, ...]:
        return tuple(self.each(cst.Call))  # type: ignore[arg-type]

    @cached_property
    def _calls_by_name(self) -> dict[str, list[cst.Call]]:
        found: dict[str, list[cst.Call]] = {}
        for call in self.calls:
            last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            if isinstance(last, cst.Name):
                found.setdefault(last.value, []).append(call)
        return found

    def calls_of(self, name: str) -> list[cst.Call]:
        """Calls by `name`, plain or of an attribute, and by other names that an import gave to what is called so."""
        others = [local for local, full in self.imported.items() if local != name and full.rpartition(".")[2] == name]
        return [call for each in (name, *others) for call in self._calls_by_name.get(each, ())]

    @cached_property
    def functions(self) -> tuple[cst.FunctionDef, ...]:
        return tuple(self.each(cst.FunctionDef))  # type: ignore[arg-type]

    @cached_property
    def imported(self) -> dict[str, str]:
        """What each imported name stands for, dotted: `{"np": "numpy", "DataLoader": "torch.utils.data.DataLoader"}`."""
        return {name: full for node in self.each((cst.Import, cst.ImportFrom)) for name, full in _imports(node).items()}

    @cached_property
    def _several(self) -> frozenset[str]:
        """Imported names that may mean something else in some place of the file: which, only its scope tells."""
        found: dict[str, set[str]] = {}
        below: set[str] = set()
        for node in self.each((cst.Import, cst.ImportFrom)):
            for name, full in _imports(node).items():
                found.setdefault(name, set()).add(full)
                below |= {name} if any(isinstance(up, SCOPES) for up in self.ancestors(node)) else set()
        bound = {
            name.value
            for node in self.each(BINDING)
            for name in tree.children(node)
            if isinstance(name, cst.Name) and not isinstance(self.parent(node), cst.ImportAlias)
        }
        return frozenset(name for name, full in found.items() if len(full) > 1 or name in below | bound)

    def import_of(self, node: cst.CSTNode, name: str = "") -> str | None:
        """What the first name of `node`, or of the dotted `name` there, was imported as: dotted; None where it was not, or is shadowed."""
        first = (name or dotted(node) or "").partition(".")[0]
        if first not in self._several:
            return self.imported.get(first)
        scope = self.scope(node)
        given = sorted(scope[first], key=lambda each: self.span(each.node)[0] if hasattr(each, "node") else 0) if scope is not None else []
        imports = [each for each in given if isinstance(each, metadata.ImportAssignment)]
        others = [each for each in given if each not in imports and hasattr(each, "node")]
        if not imports or not all(self._may_be_left_out(each.node) for each in others):
            return None
        return _imports(imports[-1].node).get(first)

    def _may_be_left_out(self, node: cst.CSTNode) -> bool:
        """Whether a name is bound under a condition, or where an import failed, and so stands in for it."""
        return any(isinstance(up, (cst.If, cst.Try, cst.ExceptHandler)) for up in self.ancestors(node))

    def full_name(self, node: cst.BaseExpression) -> str | None:
        """Dotted name of an expression with imports resolved, such as `torch.optim.Adam`; None when it is no plain chain of names.

        A name that is imported elsewhere in the file, and is something of the program's own here, begins with `<local>`.
        """
        name = dotted(node)
        if name is None:
            return None
        first, dot, rest = name.partition(".")
        full = self.import_of(node)
        return f"{LOCAL}.{name}" if full is None and first in self.imported else (full or first) + dot + rest

    def function_at(self, location: Location) -> cst.FunctionDef | None:
        """The innermost function whose decorators, `def` or body cover the line."""
        found = None
        for function in self.functions:
            if self.covers(function, location.line):
                found = function
        return found

    def indent(self, node: cst.CSTNode) -> str:
        """What the line on which `node` begins is indented by."""
        row = self.raw[self.raw.rfind(b"\n", 0, self.span(node)[0]) + 1 :]
        return row[: len(row) - len(row.lstrip(b" \t"))].decode()

    def class_of(self, function: cst.FunctionDef) -> cst.ClassDef | None:
        """The class that `function` is a method of."""
        for up in self.ancestors(function):
            if isinstance(up, cst.FunctionDef):
                return None
            if isinstance(up, cst.ClassDef):
                return up
        return None


def parse(path: str, raw: bytes) -> PythonFile:
    """`raw` as a PythonFile. Raises `UsageError` when LibCST cannot read it, or it is not UTF-8."""
    try:
        module = cst.parse_module(raw)
    except (cst.ParserSyntaxError, UnicodeDecodeError, LookupError, ValueError, RecursionError) as bad:
        raise UsageError(f"{path}: cannot be parsed: {str(bad).splitlines()[0]}", HANDS_OFF) from None
    if module.encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        raise UsageError(f"{path}: is encoded in {module.encoding}, only UTF-8 is edited", HANDS_OFF)
    return PythonFile(path, raw, metadata.MetadataWrapper(module, unsafe_skip_copy=True))


def _imports(node: cst.CSTNode) -> dict[str, str]:
    """The names that `node` itself imports, and what they stand for."""
    if isinstance(node, cst.Import):
        plain = [(dotted(alias.name) or "", alias.evaluated_alias) for alias in node.names]
        return {local or full.split(".")[0]: full if local else full.split(".")[0] for full, local in plain}
    if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
        package = "." * len(node.relative) + (dotted(node.module) or "" if node.module else "")
        package += "" if package.endswith(".") else "."
        return {alias.evaluated_alias or alias.evaluated_name: package + alias.evaluated_name for alias in node.names}
    return {}


def base_names(owner: cst.ClassDef | None) -> set[str]:
    """The last names of what a class is derived from."""
    return {(dotted(base.value) or "").split(".")[-1] for base in owner.bases} if owner is not None else set()


def methods_of(owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """The functions that a class itself defines."""
    return [each for each in owner.body.body if isinstance(each, cst.FunctionDef)]


def own_method(owner: cst.ClassDef, *names: str) -> cst.FunctionDef | None:
    """The first function of one of these names that a class itself defines."""
    return next((each for each in methods_of(owner) if each.name.value in names), None)


def own_field(node: cst.CSTNode) -> str | None:
    """`x` of `self.x`; None for anything else."""
    return node.attr.value if isinstance(node, cst.Attribute) and dotted(node.value) == "self" else None


def has_slots(file: PythonFile, owner: cst.ClassDef) -> bool:
    """Whether objects of a class may have no place for another attribute."""
    return "__slots__" in file.text(owner) or any("slots" in file.text(each) for each in owner.decorators)


def sole(line: cst.CSTNode | None) -> cst.BaseSmallStatement | None:
    """The simple statement that stands alone on its line; None for any other node."""
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def is_docstring(line: cst.CSTNode | None) -> bool:
    """Whether a line is nothing but a text."""
    small = sole(line)
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def clauses(node: cst.CSTNode) -> list[cst.CompFor]:
    """The `for … in …` of a comprehension, outermost first; none for any other node."""
    found, clause = [], getattr(node, "for_in", None)
    while clause is not None:
        found.append(clause)
        clause = clause.inner_for_in
    return found


def dotted(node: cst.CSTNode | None) -> str | None:
    """`a.b.c` for a chain of names; None for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr.value}"
    return None


def string_value(node: cst.BaseExpression | None) -> str | None:
    """The text of a plain string literal, else None."""
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument `name=` of `call`."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def positional(call: cst.Call, index: int | None) -> cst.Arg | None:
    """The positional argument at `index`; None where there is none, or a `*splat` makes it unknown."""
    if index is None:
        return None
    plain: list[cst.Arg] = []
    for arg in call.args:
        if arg.star == "*":
            break
        if arg.keyword is None and arg.star == "":
            plain.append(arg)
    return plain[index] if index < len(plain) else None


def has_splat(call: cst.Call, star: str) -> bool:
    """Whether `call` has an argument `*x` (star "*") or `**x` (star "**")."""
    return any(arg.star == star for arg in call.args)


def parameter_names(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    """Names of all parameters, of stars too."""
    return {each.name.value for each in descendants(function.params, cst.Param)}  # type: ignore[attr-defined]


def placed_parameters(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """Parameters that a call may give by place, in order; the object of a method is the first."""
    return [*function.params.posonly_params, *function.params.params]


def parameter(function: cst.CSTNode | None, name: str | None) -> cst.Param | None:
    """The parameter of that name, no star, where `function` is a function or a lambda that has one."""
    if not isinstance(function, (cst.FunctionDef, cst.Lambda)):
        return None
    return next((each for each in (*placed_parameters(function), *function.params.kwonly_params) if each.name.value == name), None)


def unsubscripted(node: cst.BaseExpression) -> cst.BaseExpression:
    """`self.x` of `self.x[i][j]`."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def elements_of(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """`x` and `y` of `x, y` and `[x, y]`; `node` itself for anything else."""
    return [each.value for each in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else [node]


def targets_of(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What an assignment, `del`, `as` or a loop gives a value to, or takes it from; nothing for any other node."""
    if isinstance(node, cst.Assign):
        return [each.target for each in node.targets]
    if isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.Del)):
        return [node.target]
    return [node.name] if isinstance(node, cst.AsName) else []


def decorator_names(file: PythonFile, function: cst.FunctionDef | cst.ClassDef) -> Sequence[str]:
    """Resolved dotted names of the decorators, arguments dropped; "?" for one that is no plain name."""
    names = []
    for decorator in function.decorators:
        target = decorator.decorator
        names.append(file.full_name(target.func if isinstance(target, cst.Call) else target) or "?")
    return names
