"""Whether an expression is the path of a file, and no open file or buffer: what reads a file takes both, and goes on where a handle stands.

Names are followed to what gives them their values, parameters to what callers hand on. What nobody in the program gives counts as a path,
as long as nothing is done with it that a path cannot do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, passed, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, parameter

PATHS = ("str", "os.fspath", "os.path.join", "pathlib.Path", "pathlib.PurePath")
OF_PATHS = ("joinpath", "with_suffix", "with_name", "with_stem", "as_posix", "resolve", "absolute", "expanduser")
OF_TEXT = ("format", "replace", "strip", "rstrip", "lstrip", "lower", "upper", "decode", "removesuffix", "removeprefix", "join")
OF_SYSTEM = ("os.getenv", "os.environ.get", "os.fsdecode", "os.getcwd")
PICKS = ("next", "max", "min", "random.choice")  # give one of what they are handed
LISTS = ("list", "tuple", "sorted", "set", "iter", "reversed", "enumerate", "zip")
HANDLES = (
    "read",
    "readline",
    "readinto",
    "readlines",
    "seek",
    "tell",
    "close",
    "fileno",
    "getvalue",
    "getbuffer",
)  # a path has none of them
STREAMS = ("buffer", "raw", "stdin", "fp", "fileobj")  # attributes that hold open files
GIVES_PATH = ("TemporaryDirectory", "as_file", "path")  # `with … as name` that binds a path
MOST = 400  # own: names and functions that are followed; what needs more counts as unknown
Found = tuple[PythonFile, cst.CSTNode]


def needs_path(project: Project, file: PythonFile, node: cst.BaseExpression) -> None:
    """Raises `UsageError` where `node` may be something else than a path."""
    strange = next(_Question(project).one(file, node), None)
    if strange is not None:
        where, each = strange
        raise refuse(f"{where.location(each)}: `{short(where.text(each))}` may be an open file, and no path of one")


def of_path(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a call makes a path, or text of one."""
    if not isinstance(node, cst.Call):
        return False
    return file.full_name(node.func) in PATHS or (isinstance(node.func, cst.Attribute) and node.func.attr.value in OF_PATHS)


@dataclass(frozen=True)
class _Question:
    """What may be no path. `asked` is what was followed already, so that functions that call themselves come to an end."""

    project: Project
    asked: set[tuple[object, ...]] = field(default_factory=set)

    def _new(self, *what: object) -> bool:
        known = what in self.asked
        self.asked.add(what)
        return not known

    def one(self, file: PythonFile, node: cst.CSTNode | None) -> Iterator[Found]:
        """What may be no path among all that `node` may be."""
        if node is None or dotted(node) == "None":
            return
        if len(self.asked) > MOST:
            yield file, node
        elif isinstance(node, cst.Name):
            yield from self._named(file, node)
        elif isinstance(node, cst.Attribute):
            yield from self._attribute(file, node)
        elif isinstance(node, cst.Subscript):
            yield from self.element(file, node.value)
        elif isinstance(node, cst.Call):
            yield from self._called(file, node)
        elif isinstance(node, (cst.IfExp, cst.BooleanOperation)):
            yield from self._each(file, (node.body, node.orelse) if isinstance(node, cst.IfExp) else (node.left, node.right))
        elif not isinstance(node, (cst.BaseString, cst.BinaryOperation, cst.BaseNumber)):  # no handle can be joined or divided
            yield file, node

    def _each(self, file: PythonFile, nodes: Iterable[cst.CSTNode]) -> Iterator[Found]:
        for node in nodes:
            yield from self.one(file, node)

    def _called(self, file: PythonFile, call: cst.Call) -> Iterator[Found]:
        """What makes or alters a path, picks one, or a function of the program by what it returns."""
        full, method, meant = file.full_name(call.func) or "", callees.method_name(call), list(callees.meant(self.project, file, call))
        if of_path(file, call) or method in OF_TEXT or full in OF_SYSTEM or full.startswith("os.path."):
            return
        if full in PICKS and call.args:
            yield from self.element(file, call.args[0].value)
        elif method in ("get", "pop", "setdefault") and not meant:
            yield from self.element(file, call.func.value)  # type: ignore[union-attr]
        elif not meant:
            yield file, call
        for where, function in meant:
            if self._new("returned", id(function)):
                returned = [each for each in descendants(function.body, cst.Return) if where.function_around(each) is function]
                yield from self._each(where, [each.value for each in returned])  # type: ignore[attr-defined]

    def _attribute(self, file: PythonFile, node: cst.Attribute) -> Iterator[Found]:
        owner, name = file.class_around(node), dotted(node) or ""
        if node.attr.value in STREAMS:
            yield file, node
        if owner is None or not name.startswith("self."):
            return
        yield from self._bound(file, owner, name)
        yield from self._each(file, [each for each in given_to(owner, node.attr.value) if file.function_around(each) is None])

    def _named(self, file: PythonFile, node: cst.Name) -> Iterator[Found]:
        """A variable of a comprehension, of a function around or of the module, or a parameter."""
        name = node.value
        for up in file.ancestors(node):
            loops = [each for each in clauses(up) if _binds(each.target, name)]
            if loops:
                yield from self.element(file, loops[-1].iter)
                return
            param = parameter(up, name)
            if param is not None and isinstance(up, cst.FunctionDef):
                yield from self._handed(file, up, param, self.one)
            if isinstance(up, cst.FunctionDef):
                yield from self._bound(file, up.body, name)
            if param is not None or (isinstance(up, cst.FunctionDef) and _gets(up.body, name)):
                return
        yield from self._bound(file, file.module, name)

    def _bound(self, file: PythonFile, owner: cst.CSTNode, name: str) -> Iterator[Found]:
        """What `owner` gives to the dotted `name`, by assignments, loops and `with`, and what is done with it that a path cannot do."""
        if not self._new("bound", id(owner), name):
            return
        outside = owner is file.module  # what stands in functions are other variables

        def mine(node: cst.CSTNode) -> bool:
            return not outside or file.function_around(node) is None

        for node in filter(mine, descendants(owner, (cst.For, cst.WithItem, cst.NamedExpr, cst.Attribute))):
            if isinstance(node, cst.For) and _binds(node.target, name):
                yield from self.element(file, node.iter)
            elif isinstance(node, cst.WithItem) and node.asname is not None and _binds(node.asname.name, name) and not _gives_path(node):
                yield file, node
            elif isinstance(node, cst.NamedExpr) and dotted(node.target) == name:
                yield from self.one(file, node.value)
            elif isinstance(node, cst.Attribute) and node.attr.value in HANDLES and dotted(node.value) == name:
                yield file, node
        yield from self._each(file, filter(mine, given_to(owner, name)))

    def _handed(self, file: PythonFile, function: cst.FunctionDef, param: cst.Param, judge) -> Iterator[Found]:
        """What callers hand to a parameter, or to what the function is handed to, such as `map(function, these)`."""
        if not self._new("handed", id(param), judge.__name__):
            return
        if param.default is not None:
            yield from judge(file, param.default)
        for where, call in callers.sites(self.project, file, function):
            given = passed(where, call, file, function, param)
            if given is not None:
                yield from judge(where, given)
        for where, others in _handed_on(self.project, function.name.value):
            for other in others:
                yield from self.element(where, other)

    def element(self, file: PythonFile, held: cst.CSTNode) -> Iterator[Found]:
        """What may be no path among the elements of a container; one that the program does not fill itself holds none that is strange."""
        if isinstance(held, (cst.List, cst.Tuple, cst.Set)):
            yield from self._each(file, [each.value for each in held.elements if not isinstance(each, cst.StarredElement)])
        elif isinstance(held, cst.Dict):
            yield from self._each(file, [each.value for each in held.elements if isinstance(each, cst.DictElement)])
        elif isinstance(held, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
            yield from self.one(file, held.elt)
        elif isinstance(held, cst.DictComp):
            yield from self.one(file, held.value)
        elif isinstance(held, cst.Call):
            yield from self._listed(file, held)
        elif isinstance(held, (cst.Name, cst.Attribute)) and dotted(held) is not None:
            yield from self._filled(file, held, dotted(held) or "")

    def _listed(self, file: PythonFile, call: cst.Call) -> Iterator[Found]:
        if file.full_name(call.func) in LISTS:
            for arg in call.args:
                yield from self.element(file, arg.value)
        elif callees.method_name(call) in ("values", "items", "copy"):
            yield from self.element(file, call.func.value)  # type: ignore[union-attr]
        for where, function in callees.meant(self.project, file, call):
            for each in descendants(function.body, (cst.Return, cst.Yield)) if self._new("listed", id(function)) else ():
                if each.value is not None:  # type: ignore[attr-defined]
                    yield from (self.element if isinstance(each, cst.Return) else self.one)(where, each.value)  # type: ignore[attr-defined]

    def _filled(self, file: PythonFile, held: cst.BaseExpression, name: str) -> Iterator[Found]:
        """What a variable or an attribute of `self` is given as a container, and what is appended to it or set in it."""
        function = file.function_around(held)
        owner = file.class_around(held) if name.startswith("self.") else function
        owners = [each for each in (owner, file.module if "." not in name else None) if each is not None]
        for each in owners if self._new("filled", id(owner), name) else ():
            for value in given_to(each, name):
                yield from self.element(file, value)
            for node in descendants(each, (cst.Call, cst.Assign)):
                if isinstance(node, cst.Assign) and any(_sets(target.target, name) for target in node.targets):
                    yield from self.one(file, node.value)
                elif isinstance(node, cst.Call) and dotted(node.func) in (f"{name}.append", f"{name}.add") and node.args:
                    yield from self.one(file, node.args[0].value)
        param = parameter(function, name)
        if param is not None and function is not None:
            yield from self._handed(file, function, param, self.element)


def _sets(target: cst.CSTNode, name: str) -> bool:
    return isinstance(target, cst.Subscript) and dotted(target.value) == name


def _gives_path(item: cst.WithItem) -> bool:
    return isinstance(item.item, cst.Call) and callees.called_name(item.item).split(".")[-1] in GIVES_PATH


def _binds(target: cst.CSTNode, name: str) -> bool:
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_binds(each.value, name) for each in target.elements)
    return dotted(target) == name


def _gets(body: cst.CSTNode, name: str) -> bool:
    """Whether a function gives its variable a value, which then is none of the module's."""
    targets = descendants(body, (cst.AssignTarget, cst.AnnAssign, cst.For, cst.AsName, cst.NamedExpr))
    return any(_binds(each.name if isinstance(each, cst.AsName) else each.target, name) for each in targets)  # type: ignore[attr-defined]


def _handed_on(project: Project, name: str) -> Iterator[tuple[PythonFile, list[cst.BaseExpression]]]:
    """The other arguments of calls that the function called `name` is handed to."""
    for where in project.parsed(name):
        for call in where.calls:
            mine = [arg for arg in call.args if (dotted(arg.value) or "").split(".")[-1] == name]
            if mine:
                yield where, [arg.value for arg in call.args if arg not in mine]
