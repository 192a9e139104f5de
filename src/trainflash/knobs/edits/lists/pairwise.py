"""Whether a function joins two parts such that neighbours may be joined first: it gives the one, and behind it the other.

What it gives is `torch.cat([left, right])` of its bare parameters, or an object, a dictionary or a tuple of which each field is joined so
of the same field of both. The right one may be counted on from the length of a field of the left one: `right.edges + len(left.nodes)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, literal, refuse
from trainflash.knobs.reading.python_source import (
    PythonFile,
    decorator_names,
    descendants,
    dotted,
    is_docstring,
    keyword,
    methods_of,
    sole,
    string_value,
)

TENSORS = ("cat", "concat", "concatenate", "hstack", "vstack")
JOINS = {f"torch.{name}" for name in TENSORS} | {f"numpy.{name}" for name in ("concatenate", "hstack", "vstack")}
ADDS = ("operator.add", "operator.concat", "_operator.add", "_operator.concat")
PLAIN = (cst.Name, cst.Attribute, cst.Subscript)


@dataclass(frozen=True)
class _Joined:
    """One field of the result: which part of both it joins, along which dimension, and what part's length it counts on from."""

    part: str
    dim: int
    counted: tuple[str, int] | None


def joins(project: Project, file: PythonFile, function: cst.BaseExpression, here: object) -> None:
    """Raises `UsageError` where `function` is not known to join what it is given so, and to do nothing besides."""
    adds = file.full_name(function) in ADDS or (isinstance(function, cst.Lambda) and _adds(function))
    found = project.functions("__add__") if adds else project.functions((dotted(function) or "").split(".")[-1])
    if len(found) != 1:
        raise refuse(f"{here}: what `{file.text(function)}` does with two parts is not known")
    where, each = found[0]
    params = [param.name.value for param in each.params.params]
    returned = _returned(each)
    if len(params) != 2 or each.decorators or returned is None:
        raise refuse(f"{where.location(each)}: {each.name.value} may do more than join two parts")
    fields = _Fields(project, where, each, params[0], params[1])
    joined = fields.all_of(returned)
    if joined is None or not any(isinstance(one, _Joined) for one in joined) or not _counted_so(joined):
        raise refuse(f"{where.location(each)}: {each.name.value} is not known to join its two parts as they are, one behind the other")


def _adds(function: cst.Lambda) -> bool:
    params = [param.name.value for param in function.params.params]
    body = function.body
    if not isinstance(body, cst.BinaryOperation) or not isinstance(body.operator, cst.Add):
        return False
    return len(params) == 2 and [dotted(body.left), dotted(body.right)] == params


def _returned(function: cst.FunctionDef) -> cst.BaseExpression | None:
    """What the function returns, where it does nothing else but give values names of its own, each once."""
    lines = [line for line in function.body.body if not is_docstring(line)] if isinstance(function.body, cst.IndentedBlock) else []
    params = {param.name.value for param in function.params.params}
    names: list[str | None] = []
    for line in lines[:-1]:
        small = sole(line)
        if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.targets[0].target, cst.Name):
            return None
        names.append(small.targets[0].target.value)
    last = sole(lines[-1]) if lines else None
    alone = len(set(names)) == len(names) and not params & set(names)
    return last.value if isinstance(last, cst.Return) and alone else None


def _counted_so(joined: list[_Joined | None]) -> bool:
    """Whether each length that is counted on from is the length of a field that grows by exactly that."""
    lengths = {(each.part, each.dim) for each in joined if each is not None and each.counted is None}
    return all(each.counted is None or each.counted in lengths for each in joined if each is not None)


@dataclass(frozen=True)
class _Fields:
    project: Project
    file: PythonFile
    function: cst.FunctionDef
    left: str
    right: str

    def all_of(self, node: cst.BaseExpression) -> list[_Joined | None] | None:
        """The fields of what is returned, None for one that is the left part's; None where one is anything else."""
        node = self._meant(node)
        whole = self._one(node, "")
        if whole is not None:
            return [whole]
        fields = self._named(node)
        found = [(self._one(value, part), self.file.text(self._meant(value)) == self.left + part) for part, value in fields or ()]
        return [one for one, _ in found] if found and all(one is not None or same for one, same in found) else None

    def _meant(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """What a name of the function's own stands for."""
        given = given_to(self.function.body, node.value) if isinstance(node, cst.Name) else []
        return given[0] if len(given) == 1 else node

    def _one(self, node: cst.BaseExpression, part: str) -> _Joined | None:
        """`torch.cat([left.part, right.part])`."""
        node = self._meant(node)
        full = self.file.full_name(node.func) if isinstance(node, cst.Call) else None
        both = node.args[0].value if full in JOINS and node.args else None  # type: ignore[attr-defined]
        if not isinstance(both, (cst.List, cst.Tuple)) or len(both.elements) != 2:
            return None
        given = keyword(node, "dim") or keyword(node, "axis") or (node.args[1] if len(node.args) > 1 else None)  # type: ignore[arg-type,attr-defined]
        dim = literal(given.value) if given is not None else 0
        first, second = (self._meant(each.value) for each in both.elements)
        counted = None
        if isinstance(second, cst.BinaryOperation) and isinstance(second.operator, cst.Add):
            sides = [second.left, second.right]
            plain = [side for side in sides if self.file.text(side) == self.right + part]
            lengths = [found for side in sides if (found := self._length(self._meant(side))) is not None]
            if len(plain) != 1 or len(lengths) != 1:
                return None
            second, counted = plain[0], lengths[0]
        texts = [self.file.text(first), self.file.text(second)]
        known = isinstance(dim, int) and len(node.args) <= 2  # type: ignore[attr-defined]
        return _Joined(part, dim, counted) if known and texts == [self.left + part, self.right + part] else None

    def _length(self, node: cst.BaseExpression) -> tuple[str, int] | None:
        """Of which part of the left one `len(left.x)`, `left.x.size(0)` or `left.x.shape[0]` is the length, and along which dimension."""
        of: cst.BaseExpression | None = None
        dim: object = 0
        if isinstance(node, cst.Call) and len(node.args) == 1:
            sized = isinstance(node.func, cst.Attribute) and node.func.attr.value == "size"
            of = node.func.value if sized else node.args[0].value if dotted(node.func) == "len" else None  # type: ignore[attr-defined]
            dim = literal(node.args[0].value) if sized else 0
            if not sized and dotted(of) == self.left and (told := self._own_length()) is not None:
                return told
        elif isinstance(node, cst.Subscript) and isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape":
            index = node.slice[0].slice
            of, dim = node.value.value, literal(index.value) if isinstance(index, cst.Index) else None
        text = self.file.text(of) if of is not None else ""
        return (text.removeprefix(self.left), dim) if isinstance(dim, int) and text.startswith(self.left) else None

    def _own_length(self) -> tuple[str, int] | None:
        """What `__len__` of the class says: the length of one field."""
        owner = self.file.class_of(self.function)
        methods = methods_of(owner) if owner is not None else []
        said = next((each for each in methods if each.name.value == "__len__"), None)
        returned = _returned(said) if said is not None else None
        if said is None or returned is None or said.decorators:
            return None
        found = _Fields(self.project, self.file, said, said.params.params[0].name.value, "")._length(returned)
        return found if found is not None and found[0] else None

    def _named(self, node: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]] | None:
        """The parts of what is made, as they are asked for behind a name of it: `.nodes`, `["nodes"]`, `[0]`."""
        if isinstance(node, cst.Dict):
            pairs = [(each.key, each.value) for each in node.elements if isinstance(each, cst.DictElement)]
            plain = len(pairs) == len(node.elements) and all(string_value(key) is not None for key, _ in pairs)
            return [(f"[{self.file.text(key)}]", value) for key, value in pairs] if plain else None
        if isinstance(node, cst.Tuple):
            return [(f"[{place}]", each.value) for place, each in enumerate(node.elements)]
        return list(self._made(node)) if isinstance(node, cst.Call) else None

    def _made(self, call: cst.Call) -> Iterator[tuple[str, cst.BaseExpression]]:
        """What a constructor that only keeps what it is given is given, and as what it keeps it."""
        owner = self.file.class_of(self.function)
        own = dotted(call.func) if isinstance(call.func, (cst.Name, cst.Attribute)) else self.file.text(call.func)
        if owner is None or own not in (owner.name.value, "self.__class__", "type(self)") or any(arg.star for arg in call.args):
            return
        kept = _kept(self.file, owner)
        for number, arg in enumerate(call.args):
            name = arg.keyword.value if arg.keyword is not None else list(kept)[number] if number < len(kept) else ""
            yield f".{kept.get(name, '?')}", arg.value


def _kept(file: PythonFile, owner: cst.ClassDef) -> dict[str, str]:
    """The attribute that keeps each parameter of the constructor; empty where it does more than that."""
    methods = {each.name.value: each for each in methods_of(owner)}
    made = methods.get("__init__")
    if made is None:
        lines = [sole(line) for line in owner.body.body if isinstance(line, cst.SimpleStatementLine)]
        fields = [dotted(line.target) or "?" for line in lines if isinstance(line, cst.AnnAssign)]
        plain = any(name.split(".")[-1] == "dataclass" for name in decorator_names(file, owner)) and "__post_init__" not in methods
        return {name: name for name in fields} if plain else {}
    names = [param.name.value for param in made.params.params][1:]
    lines = [line for line in made.body.body if not is_docstring(line)]
    if not all(isinstance(sole(line), cst.Assign) for line in lines) or next(descendants(made.body, cst.Call), None) is not None:
        return {}
    found = {name: "?" for name in names}
    for target in descendants(made.body, cst.Attribute):
        for value in given_to(made.body, dotted(target) or ""):
            if isinstance(value, cst.Name) and value.value in found:
                found[value.value] = (dotted(target) or "").removeprefix("self.")
    return found
