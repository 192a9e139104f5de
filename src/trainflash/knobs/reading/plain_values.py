"""Whether an expression is known to be a number, a text or a tuple of such: what a set finds by its value, as a list does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, literal, passed
from trainflash.knobs.reading.python_source import SCOPES, PythonFile, descendants, dotted, string_value

Kind = Literal["number", "text", "tuple", "itself"]  # "itself": what a variable gives itself anew, as in `n = n + 1`
DEEPEST = 12  # own: names, calls and parameters between an expression and what shows its kind
MOST = 2000  # own: expressions that one question may look at
NUMBERS = {"len", "int", "float", "bool", "ord", "hash", "id"}
TEXTS = {"str", "repr", "chr", "hex", "input", "format", "os.getcwd", "os.getenv"}
TEXT_METHODS = {"capitalize", "format", "hexdigest", "join", "lower", "lstrip", "replace", "rstrip", "strip", "title", "upper", "zfill"}
NUMBER_METHODS = {"bit_length", "item"}
DRAWN = {"random.randint", "random.randrange", "random.random", "random.getrandbits", "time.time", "os.getpid"}
LINES = {"split", "rsplit", "splitlines", "readlines"}
FOLDERS = {"os.listdir", "glob.glob", "glob.iglob"}
KEYS = {"keys", "named_parameters", "named_modules", "named_buffers", "named_children", "items"}
SAME = {"list", "sorted", "set", "tuple", "reversed", "frozenset", "iter", "random.sample", "random.choices"}
ONE_OF = {"min", "max", "next", "random.choice"}
WRITTEN: dict[str, Kind] = {"int": "number", "float": "number", "bool": "number", "str": "text", "bytes": "text"}
LISTED = ("list", "List", "Sequence", "Iterable", "tuple", "Tuple", "set", "Set", "Iterator", "Collection")


class PlainValues:
    """Answers for one program; None wherever it is not known."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._asked: list[tuple[str, int]] = []
        self._left = MOST

    def of(self, file: PythonFile, node: cst.BaseExpression | None) -> Kind | None:
        """What kind of value `node` is."""
        return self._deeper(self._of, file, node)

    def entry(self, file: PythonFile, node: cst.BaseExpression | None) -> Kind | None:
        """What kind of values `node` holds or gives, all of them."""
        return self._deeper(self._entry, file, node)

    def _deeper(self, ask, file: PythonFile, node: cst.BaseExpression | None) -> Kind | None:
        key = (ask.__name__, id(node))
        if key in self._asked:
            return "itself"
        self._left -= 1
        if node is None or len(self._asked) >= DEEPEST or self._left < 0:
            return None
        self._asked.append(key)
        try:
            return ask(file, node)
        finally:
            self._asked.pop()

    def all_alike(self, kinds: Iterable[Kind | None]) -> Kind | None:
        """One kind for several values: "tuple" where they are mixed. None for none at all."""
        found = set(kinds)
        found -= {"itself"} if found != {"itself"} else set()
        return None if None in found or not found else found.pop() if len(found) == 1 else "tuple"

    # One value

    def _of(self, file: PythonFile, node: cst.BaseExpression) -> Kind | None:
        if literal(node) is not UNKNOWN:
            return "text" if string_value(node) is not None else "number"
        if isinstance(node, (cst.FormattedString, cst.ConcatenatedString)):
            return "text"
        if isinstance(node, cst.UnaryOperation):
            return "number" if isinstance(node.operator, cst.Not) else self.of(file, node.expression)
        if isinstance(node, cst.BinaryOperation):
            return self._computed(file, node)
        if isinstance(node, cst.Comparison):
            return "number" if self.of(file, node.left) and all(self.of(file, each.comparator) for each in node.comparisons) else None
        if isinstance(node, cst.Tuple):
            return "tuple" if all(self.of(file, each.value) for each in node.elements) else None
        if isinstance(node, cst.IfExp):
            return self.all_alike((self.of(file, node.body), self.of(file, node.orelse)))
        if isinstance(node, cst.Call):
            return self._called(file, node)
        if isinstance(node, cst.Subscript):
            ranged = any(isinstance(each.slice, cst.Slice) for each in node.slice)
            return self.of(file, node.value) if ranged else self.entry(file, node.value)
        if isinstance(node, cst.Attribute) and dotted(node.value) != "self":
            return "text" if node.attr.value in ("stem", "suffix") else None
        return self._named(file, node, self.of) if dotted(node) is not None else None

    def _computed(self, file: PythonFile, node: cst.BinaryOperation) -> Kind | None:
        left = self.of(file, node.left)
        if left == "text" and isinstance(node.operator, cst.Modulo):
            return "text"
        return self.all_alike((left, self.of(file, node.right)))

    def _called(self, file: PythonFile, call: cst.Call) -> Kind | None:
        full, method = file.full_name(call.func) or "", callees.method_name(call)
        if full in NUMBERS or full in DRAWN:
            return "number"
        if full in TEXTS or full.startswith("os.path."):
            return None if full in ("os.path.split", "os.path.splitext") else "text"
        given = [arg.value for arg in call.args if arg.keyword is None]
        if full in ("tuple", "frozenset") and len(given) == 1:
            return "tuple" if self.entry(file, given[0]) else None
        if full in ONE_OF and given:
            return self.entry(file, given[0]) if len(given) == 1 else self.all_alike(self.of(file, each) for each in given)
        if not callees.of_library(self.project, file, call) and not callees.defined(self.project, method):
            if method in TEXT_METHODS or method in NUMBER_METHODS:
                return "text" if method in TEXT_METHODS else "number"
            if method == "decode" and all(string_value(each) is not None for each in given):
                return "text"
        return self._returned(file, call, self.of)

    def _returned(self, file: PythonFile, call: cst.Call, ask) -> Kind | None:
        """What the one function of the program's gives that is called."""
        sure = isinstance(call.func, cst.Name) or callees.own_method(self.project, file, call)
        found = list(callees.meant(self.project, file, call)) if sure else []
        if len(found) != 1 or found[0][1].name.value in callees.CONSTRUCTORS or found[0][1].decorators:
            return None
        where, function = found[0]
        if function.returns is not None:
            declared = said(function.returns, listed=ask == self.entry)
            if declared is not None:
                return declared
        values = [each.value for each in descendants(function.body, cst.Return)]  # type: ignore[attr-defined]
        lazy = next(descendants(function.body, cst.Yield), None) is not None
        return None if lazy or None in values else self.all_alike(ask(where, each) for each in values)

    # What a thing holds

    def _entry(self, file: PythonFile, node: cst.BaseExpression) -> Kind | None:
        if isinstance(node, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)):
            return "text"
        if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
            parts = [(each.value, isinstance(each, cst.StarredElement)) for each in node.elements]
            return self.all_alike(self.entry(file, one) if star else self.of(file, one) for one, star in parts)
        if isinstance(node, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
            return self.of(file, node.elt)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return self.all_alike((self.entry(file, node.left), self.entry(file, node.right)))
        if isinstance(node, cst.Subscript) and any(isinstance(each.slice, cst.Slice) for each in node.slice):
            return self.entry(file, node.value)
        if isinstance(node, cst.Call):
            return self._entry_of_call(file, node)
        kind = self._named(file, node, self.entry) if dotted(node) is not None else None
        return kind or ("text" if self.of(file, node) == "text" else None)

    def _entry_of_call(self, file: PythonFile, call: cst.Call) -> Kind | None:
        full, method = file.full_name(call.func) or "", callees.method_name(call)
        given = [arg.value for arg in call.args if arg.keyword is None]
        if full == "range":
            return "number"
        if full in FOLDERS or full in ("open", "io.open"):
            return "text"
        if full in SAME and given:
            return self.entry(file, given[0])
        if callees.defined(self.project, method):
            return self._returned(file, call, self.entry)
        if method in LINES and not callees.of_library(self.project, file, call):
            parted = all(string_value(each) is not None for each in given[:1])  # a tensor is split by a number
            return "text" if parted or self.of(file, call.func.value) == "text" else None  # type: ignore[union-attr]
        if method == "keys" and not given:
            return "text"
        return self._returned(file, call, self.entry)

    # Names

    def _named(self, file: PythonFile, node: cst.BaseExpression, ask) -> Kind | None:
        """What all assignments, loops and callers give a variable, or all of its class's assignments an attribute."""
        listed, name = ask == self.entry, dotted(node) or ""
        if isinstance(node, cst.Attribute):
            owner = file.class_around(node) if dotted(node.value) == "self" else None
            return self._given(file, owner, name, listed) if owner is not None else None
        scope = file.scope(node)
        bound = [getattr(each, "node", None) for each in (scope[name] if scope is not None else ())]
        return self.all_alike(self._bound(file, each, name, listed) for each in bound)

    def _given(self, file: PythonFile, owner: cst.CSTNode, name: str, listed: bool) -> Kind | None:
        """What an attribute is given, and where it is a list, what is put into it."""
        word = name.removeprefix("self.")
        declared = [each for each in descendants(owner, cst.AnnAssign) if dotted(each.target) in (name, word)]  # type: ignore[attr-defined]
        if declared:
            return said(declared[0].annotation, listed)  # type: ignore[attr-defined]
        ask = self.entry if listed else self.of
        kinds = [ask(file, value) for value in given_to(owner, name) if not empty(value)]
        added = self._added(file, owner, name) if listed else []
        return self.all_alike([*kinds, *added])

    def _added(self, file: PythonFile, owner: cst.CSTNode, name: str) -> list[Kind | None]:
        """What calls put into a list: None for one that is not followed."""
        found: list[Kind | None] = []
        for call in descendants(owner, cst.Call):
            if not isinstance(call.func, cst.Attribute) or dotted(call.func.value) != name:  # type: ignore[attr-defined]
                continue
            word, given = call.func.attr.value, [arg.value for arg in call.args]  # type: ignore[attr-defined]
            if word in ("append", "add", "insert") and given:
                found.append(self.of(file, given[-1]))
            elif word in ("extend", "update") and given:
                found.append(self.entry(file, given[0]))
        return found

    def _bound(self, file: PythonFile, target: cst.CSTNode | None, name: str, listed: bool) -> Kind | None:
        ask = self.entry if listed else self.of
        up = file.parent(target) if target is not None else None
        param = target if isinstance(target, cst.Param) else up
        if isinstance(param, cst.Param):
            return self._passed(file, param, listed)
        if isinstance(up, cst.AnnAssign):
            return said(up.annotation, listed)
        if isinstance(up, cst.AugAssign):
            return ask(file, up.value)
        if isinstance(up, cst.NamedExpr):
            return ask(file, up.value)
        if isinstance(up, cst.AsName):
            item = file.parent(up)
            call = item.item if isinstance(item, cst.WithItem) else None
            return "text" if listed and isinstance(call, cst.Call) and file.full_name(call.func) == "open" else None
        if isinstance(up, cst.AssignTarget):
            around = file.function_around(up) or file.module
            value = file.parent(up).value  # type: ignore[union-attr]
            added = self._added(file, around, name) if listed else []
            return self.all_alike([*([] if empty(value) and added else [ask(file, value)]), *added])
        return None if listed else self._of_loop(file, target, name)

    def _of_loop(self, file: PythonFile, target: cst.CSTNode | None, name: str) -> Kind | None:
        """What a loop gives one of its variables, or an unpacking of what is written out."""
        for up in file.ancestors(target) if target is not None else ():
            if isinstance(up, cst.AssignTarget):
                values = given_to(file.parent(up), name)  # type: ignore[arg-type]
                return self.all_alike(self.of(file, each) for each in values)
            if isinstance(up, (cst.For, cst.CompFor)):
                return self._taken(file, up.target, up.iter, name)
            if isinstance(up, SCOPES):
                break
        return None

    def _taken(self, file: PythonFile, target: cst.BaseExpression, whole: cst.BaseExpression, name: str) -> Kind | None:
        """What `name` is in each turn of a loop of `target` over `whole`."""
        if isinstance(target, cst.Name):
            return self.entry(file, whole) if target.value == name else None
        if not isinstance(target, (cst.Tuple, cst.List)) or not isinstance(whole, cst.Call):
            return None
        parts = [each.value for each in target.elements]
        place = next((number for number, part in enumerate(parts) if name in _told(part)), None)
        full, given = file.full_name(whole.func), [arg.value for arg in whole.args]
        if full == "enumerate" and len(parts) == 2 and given:
            return "number" if place == 0 else self._taken(file, parts[1], given[0], name)
        if full == "zip" and len(parts) == len(given) and place is not None and not any(arg.star or arg.keyword for arg in whole.args):
            return self._taken(file, parts[place], given[place], name)
        return "text" if place == 0 and isinstance(parts[0], cst.Name) and callees.method_name(whole) in KEYS else None

    def _passed(self, file: PythonFile, param: cst.Param, listed: bool) -> Kind | None:
        """What an annotation says of a parameter, or all callers that the program shows hand it."""
        if param.annotation is not None:
            return said(param.annotation, listed)
        function = next((up for up in file.ancestors(param) if isinstance(up, (cst.FunctionDef, cst.Lambda))), None)
        if not isinstance(function, cst.FunctionDef) or param.star:
            return None
        if function.name.value == "__getitem__" and not listed:
            drawn = next((where for word in ("Sampler", "Subset") for where in self.project.parsed(word)), None)
            return "number" if drawn is None else None
        ask = self.entry if listed else self.of
        kinds: list[Kind | None] = []
        for where, call in callers.sites(self.project, file, function):
            try:
                given = passed(where, call, file, function, param)
            except UsageError:
                return None
            kinds.append(ask(where, given) if given is not None else ask(file, param.default))
        return self.all_alike(kinds)


def said(annotation: cst.Annotation, listed: bool) -> Kind | None:
    """The kind that an annotation names, of each entry where `listed`."""
    node = annotation.annotation
    if not listed:
        return WRITTEN.get(dotted(node) or "")
    if not isinstance(node, cst.Subscript) or (dotted(node.value) or "").split(".")[-1] not in LISTED:
        return None
    parts = [each.slice.value for each in node.slice if isinstance(each.slice, cst.Index)]
    kinds = {WRITTEN.get(dotted(part) or "") for part in parts if not isinstance(part, cst.Ellipsis)}
    return kinds.pop() if len(kinds) == 1 else None


def empty(value: cst.BaseExpression) -> bool:
    bare = isinstance(value, cst.Call) and dotted(value.func) in ("list", "set") and not value.args
    return bare or (isinstance(value, (cst.List, cst.Tuple)) and not value.elements)


def _told(part: cst.BaseExpression) -> set[str]:
    return {each.value for each in descendants(part, cst.Name)}  # type: ignore[attr-defined]
