"""Which expressions may be an object that is held, or a part or a view of it: the names it goes by, where in doubt too many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, placed_parameters, targets_of

# What nobody changes, and what gives the object itself, a view or a part of it; all else makes something new.
FACTS = {"shape", "ndim", "dtype", "size", "device", "name", "itemsize", "nbytes", "is_cuda", "requires_grad"}
PASSES = {
    "array_split", "as_tensor", "asanyarray", "asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "bfloat16",
    "bool", "broadcast_to", "buffers", "cast", "children", "chunk", "contiguous", "cpu", "cuda", "detach", "diagonal", "double",
    "expand", "expand_as", "expand_dims", "flatten", "flip", "fliplr", "flipud", "float", "from_numpy", "frombuffer", "get", "half",
    "hsplit", "imag", "int", "items", "long", "modules", "moveaxis", "movedim", "named_buffers", "named_modules", "named_parameters",
    "narrow", "numpy", "parameters", "permute", "pin_memory", "pop", "ravel", "real", "reshape", "reshape_as", "rot90", "select",
    "setdefault", "split", "squeeze", "state_dict", "swapaxes", "swapdims", "t", "tensor_split", "to", "transpose", "type", "type_as",
    "unbind", "unflatten", "unfold", "unsqueeze", "values", "view", "view_as", "vsplit",
}  # fmt: skip
CONVERTS = {"bfloat16", "bool", "double", "float", "half", "int", "long", "to", "type", "type_as"}  # of those, what makes a copy as a rule
BUILTIN = {"enumerate", "filter", "getattr", "iter", "memoryview", "next", "reversed", "vars", "zip"}
BINDS = (cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.WithItem)


@dataclass
class Shared:
    """What is held in one piece of a file: by `names` (`x`, also `batch["x"]`), and by the expressions `seeds` themselves.

    `around` are names of containers made there that hold it: to change such a container changes nothing of what is held.
    """

    project: Project
    file: PythonFile
    names: set[str]
    seeds: frozenset[int] = frozenset()
    around: set[str] = field(default_factory=set)
    seen: dict[tuple[int, frozenset[str]], bool] = field(default_factory=dict)  # what was found of functions and what they were handed

    def within(self, where: cst.CSTNode) -> Shared:
        """With all further names that it gets in `where`."""
        grown = Shared(self.project, self.file, set(self.names), self.seeds, set(self.around), self.seen)
        binding = list(descendants(where, BINDS))
        before = -1
        while before != len(grown.names) + len(grown.around):
            before = len(grown.names) + len(grown.around)
            for node in binding:
                grown._bind(node)
        return grown

    def _bind(self, node: cst.CSTNode) -> None:
        if isinstance(node, (cst.For, cst.CompFor)):
            if self.holds(node.iter) or self.wraps(node.iter):
                self.names |= set(_names(self.file, _counted(node)))
        elif isinstance(node, cst.WithItem):
            if node.asname is not None and self.holds(node.item):
                self.names |= set(_names(self.file, node.asname.name))
        elif node.value is not None:  # type: ignore[attr-defined]
            for target in targets_of(node):
                self._assign(target, node.value)  # type: ignore[attr-defined]

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        pairs = [(target, value)]
        several = isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List))
        if several and len(target.elements) == len(value.elements):  # type: ignore[attr-defined]
            pairs = [(a.value, b.value) for a, b in zip(target.elements, value.elements, strict=True)]  # type: ignore[attr-defined]
        for one, given in pairs:
            if self.holds(given):
                self.names |= set(_names(self.file, one))
            elif self.wraps(given):
                self.around |= set(_names(self.file, one))

    def holds(self, node: cst.BaseExpression) -> bool:
        """Whether `node` may be what is held, or a part of it."""
        if id(node) in self.seeds:
            return True
        if isinstance(node, cst.Name):
            return node.value in self.names and not self._library(node.value)
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            if isinstance(node, cst.Attribute) and node.attr.value in FACTS:
                return False
            part = isinstance(node, cst.Subscript) and self.wraps(node.value)
            return part or self.file.text(node) in self.names or self.holds(node.value)
        if isinstance(node, cst.Call):
            return self._given_back(node)
        parts: list[cst.BaseExpression] = []
        if isinstance(node, cst.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, cst.BooleanOperation):
            parts = [node.left, node.right]
        elif isinstance(node, cst.NamedExpr):
            parts = [node.value]
        elif isinstance(node, cst.Await):
            parts = [node.expression]
        return any(self.holds(each) for each in parts)

    def wraps(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is a container that was made there, with what is held in it."""
        if isinstance(node, (cst.Tuple, cst.List, cst.Set, cst.Dict)):
            return any(self.holds(element.value) or self.wraps(element.value) for element in node.elements)
        if isinstance(node, cst.Call) and callees.called_name(node) in BUILTIN | PASSES | {"list", "tuple", "dict", "sorted", "copy"}:
            return any(self.wraps(arg.value) for arg in node.args)
        return isinstance(node, (cst.Name, cst.Attribute)) and self.file.text(node) in self.around

    def _library(self, name: str) -> bool:
        return name in self.file.imported and not callees.of_project(self.project, self.file.imported[name])

    def handed(self, call: cst.Call) -> list[int]:
        """Numbers of the arguments by which `call` gets what is held."""
        return [number for number, arg in enumerate(call.args) if self.holds(arg.value) or self.wraps(arg.value)]

    def _given_back(self, call: cst.Call) -> bool:
        """Whether what a call gives may be what is held: a view of it, or what a function of the project returns of its arguments."""
        name = callees.called_name(call)
        base = call.func.value if isinstance(call.func, cst.Attribute) else None
        mine = base is not None and self.holds(base)
        if not mine and not self.handed(call):
            return False
        found = list(callees.meant(self.project, self.file, call))
        if found:
            return any(self._returned(where, function, names) for where, function, names in self.taken(call, found))
        if base is None and self.file.import_of(call.func) is None:
            return name in BUILTIN
        name = (self.file.full_name(call.func) or name).split(".")[-1]
        up = self.file.parent(call)
        if name in CONVERTS and isinstance(up, cst.Attribute) and up.attr.value.endswith("_"):
            return False  # `x.float().div_(255)`: whoever writes in place right behind a conversion means the copy that it makes
        return name in PASSES or (name.endswith("_") and not name.endswith("__"))

    def taken(
        self, call: cst.Call, found: list[tuple[PythonFile, cst.FunctionDef]]
    ) -> Iterator[tuple[PythonFile, cst.FunctionDef, frozenset[str]]]:
        """Functions that get what is held from `call`, with the names of the parameters that do."""
        handed = self.handed(call)
        mine = isinstance(call.func, cst.Attribute) and self.holds(call.func.value)
        for where, function in found:
            params = [param.name.value for param in placed_parameters(function)]
            own = params[:1] if where.class_of(function) is not None and params[:1] in (["self"], ["cls"]) else []
            rest = params[len(own) :]
            names = {own[0]} if mine and own else set()
            for number in handed:
                word = call.args[number].keyword
                names |= {word.value} if word is not None else set(rest[number : number + 1])
            if names:
                yield where, function, frozenset(names)

    def _returned(self, where: PythonFile, function: cst.FunctionDef, names: frozenset[str]) -> bool:
        key = (id(function), frozenset({"return", *names}))
        if key in self.seen:
            return self.seen[key]
        self.seen[key] = False
        inner = Shared(self.project, where, set(names), seen=self.seen).within(function.body)
        given = [node.value for node in descendants(function.body, (cst.Return, cst.Yield)) if node.value is not None]
        self.seen[key] = any(inner.holds(value) or inner.wraps(value) for value in given if isinstance(value, cst.BaseExpression))
        return self.seen[key]


def _counted(node: cst.For | cst.CompFor) -> cst.BaseExpression:
    """The target of a loop, without what only counts or names: the first of `enumerate(…)` and of `.items()`."""
    called = callees.called_name(node.iter) if isinstance(node.iter, cst.Call) else ""
    pair = isinstance(node.target, cst.Tuple) and len(node.target.elements) == 2
    return node.target.elements[1].value if pair and called in ("enumerate", "items") else node.target  # type: ignore[union-attr]


def elements(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The single targets of one that may unpack."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from elements(element.value)
    else:
        yield target


def _names(file: PythonFile, target: cst.BaseExpression) -> Iterator[str]:
    """What a target is called from now on."""
    return (file.text(each) for each in elements(target) if dotted(each) is not None or isinstance(each, cst.Subscript))
