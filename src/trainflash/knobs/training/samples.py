"""How a collate function goes through its batch: which loops run over samples, and how long each sample is in terms of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, elements_of
from trainflash.knobs.reading.sizes import size_of

DEEPEST = 6  # own: local names between a sample and what is filled in
REMADE = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.LongTensor", "numpy.asarray", "numpy.array", "list", "tuple")
UNCHANGED = {
    "long",
    "int",
    "float",
    "double",
    "to",
    "clone",
    "detach",
    "cpu",
    "numpy",
    "tolist",
    "contiguous",
}  # methods that keep a length
DRAWS = {"choice", "choices", "integers", "multinomial", "permutation", "randint", "randperm", "sample"}  # calls that give many numbers
MADE = ("list", "tuple", "sorted")  # calls that give a list whose length is known
IN_PLACE = {"append", "extend", "insert", "pop", "remove", "clear"}
Loop = cst.For | cst.CompFor


@dataclass(frozen=True)
class Length:
    """A sample's length as `text`, in a loop `for target in batch`; `cut`: what is filled in may be shorter. `root` is the sample."""

    text: str
    target: str
    batch: str
    cut: bool
    root: str


@dataclass(frozen=True)
class Sample:
    """Where a value of a loop's body comes from: the expression `text` of the loop's names."""

    text: str
    root: str
    loop: Loop
    cut: bool = False
    remade: bool = False  # made a tensor or a list on the way: it may have had no `shape` before


class Batch:
    """What `function` does with the batch that it is given. `lists`: names of one entry for each sample, and the statement of each."""

    def __init__(self, file: PythonFile, function: cst.FunctionDef) -> None:
        self.file, self.function = file, function
        self.body = list(function.body.body)
        given = [param.name.value for param in function.params.params if param.name.value not in ("self", "cls")]
        self.lists: dict[str, int] = dict.fromkeys(given, -1)
        for number, statement in enumerate(self.body):
            for name in self._made(statement):
                self.lists.setdefault(name, number)

    def length(self, node: cst.BaseExpression) -> Length | None:
        """What `node` measures, where that is the length of one sample in a loop over the batch; None otherwise."""
        node = self._named_length(node)
        form, inner = measured(self.file, node)
        sample = self._sample(inner, 0) if inner is not None else None
        if sample is None or inner is None:
            return None
        target, batch = self._loop(sample.loop, sample.root)  # type: ignore[misc]
        start, end = form
        if sample.remade and (start, end) != ("len(", ")"):
            if end not in (".shape[0]", ".size(0)"):
                return None
            start, end = "len(", ")"
        return Length(f"{start}{sample.text}{end}", target, batch, sample.cut or _bounded(node), sample.root)

    def place(self, node: cst.CSTNode) -> int:
        """Number of the function's statement that `node` stands in."""
        return next(number for number, statement in enumerate(self.body) if self.file.inside(node, statement))

    def loops(self, node: cst.CSTNode) -> Iterator[Loop]:
        """Loops and comprehensions around `node` in the function, innermost first."""
        for up in self.file.ancestors(node):
            if up is self.function:
                return
            if isinstance(up, cst.For) and self.file.inside(node, up.body):
                yield up
            else:
                yield from clauses(up)

    def names(self) -> set[str]:
        """Names that stand for samples in loops over the batch."""
        return {name for loop in descendants(self.function.body, (cst.For, cst.CompFor)) for name in self._bound(loop)}  # type: ignore[arg-type]

    def _made(self, statement: cst.CSTNode) -> list[str]:
        """Names that `statement` gives one entry for each sample, and that nothing changes afterwards."""
        assign = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign) else None
        if assign is None or len(assign.targets) != 1:
            return []
        target, value = assign.targets[0].target, assign.value
        if isinstance(target, cst.Name) and self._is_list(value):
            return [target.value] if self._kept(target.value) else []
        if isinstance(target, (cst.Tuple, cst.List)) and self._transposed(value):
            names = [element.value.value for element in target.elements if isinstance(element.value, cst.Name)]
            return [name for name in names if self._kept(name)]
        return []

    def _is_list(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.Call) and dotted(value.func) in MADE and len(value.args) == 1:
            inner = value.args[0].value
            return isinstance(inner, (cst.Call, cst.ListComp, cst.GeneratorExp)) or dotted(inner) in self.lists
        if isinstance(value, cst.Call) and dotted(value.func) == "sorted" and value.args:
            return dotted(value.args[0].value) in self.lists
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "tolist":
            value = value.func.value
        return isinstance(value, cst.ListComp) or (
            isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in DRAWS
        )

    def _transposed(self, value: cst.BaseExpression) -> bool:
        """`zip(*batch)`, also as a list, or of lists."""
        while isinstance(value, cst.Call) and dotted(value.func) in ("list", "tuple", "map") and value.args:
            value = value.args[-1].value
        return (
            isinstance(value, cst.Call)
            and dotted(value.func) == "zip"
            and len(value.args) == 1
            and value.args[0].star == "*"
            and (dotted(value.args[0].value) in self.lists or isinstance(value.args[0].value, cst.ListComp))
        )

    def _kept(self, name: str) -> bool:
        """Whether nothing but its one assignment gives `name` a value, or changes its entries."""
        stored = 0
        for node in descendants(self.function.body, (cst.Name,)):
            if node.value != name:
                continue
            up = self.file.parent(node)
            around = self.file.parent(up) if up is not None else None
            if isinstance(up, cst.AssignTarget) or (isinstance(up, cst.Element) and isinstance(self.file.parent(around), cst.AssignTarget)):
                stored += 1
            changed = isinstance(up, (cst.AugAssign, cst.Del)) or (isinstance(up, cst.Attribute) and up.attr.value in IN_PLACE)
            if changed or (isinstance(up, cst.Subscript) and up.value is node and isinstance(around, cst.AssignTarget)):
                return False
        return stored == 1

    def _loop(self, loop: Loop, name: str) -> tuple[str, str] | None:
        """The target of one sample, and the list, where `name` stands for a sample in `loop`."""
        if isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) in ("enumerate", "zip"):
            pairs = _pairs(loop.target, loop.iter)
        elif isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "range" and len(loop.iter.args) == 1:
            counted = loop.iter.args[0].value
            inner = counted.args[0].value if isinstance(counted, cst.Call) and dotted(counted.func) == "len" and counted.args else None
            known = inner is not None and dotted(inner) in self.lists and dotted(loop.target) == name
            return (name, self.file.text(loop.iter)) if known else None
        else:
            pairs = [(loop.target, loop.iter)]
        for target, source in pairs:
            if source is not None and dotted(source) in self.lists and name in _names(target):
                return self._spelled(target), dotted(source) or ""
        return None

    def _spelled(self, target: cst.BaseExpression) -> str:
        return self.file.text(target).strip("()") if not isinstance(target, cst.Name) else target.value

    def _bound(self, loop: Loop) -> set[str]:
        return {name for name in _names(loop.target) if self._loop(loop, name) is not None}

    def _sample(self, node: cst.BaseExpression, depth: int) -> Sample | None:
        """`node` of a loop's body in terms of the loop's names; None where it is computed."""
        if depth > DEEPEST:
            return None
        if isinstance(node, cst.Call):
            if self.file.full_name(node.func) in REMADE and node.args:
                found = self._sample(node.args[0].value, depth + 1)
                return None if found is None else replace(found, remade=True)
            plain = isinstance(node.func, cst.Attribute) and node.func.attr.value in UNCHANGED
            found = self._sample(node.func.value, depth + 1) if plain else None  # type: ignore[union-attr]
            return None if found is None else replace(found, remade=True)
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Slice):
            found = self._sample(node.value, depth + 1) if node.slice[0].slice.step is None else None
            return None if found is None else replace(found, cut=True)
        root = _root(node)
        found = None if root is None else self._origin(node, root, depth)
        return found or self._looked_up(node)

    def _looked_up(self, node: cst.BaseExpression) -> Sample | None:
        """`self.rows[i]` in a loop over the numbers of the batch's samples."""
        inner = node
        while isinstance(inner, (cst.Attribute, cst.Subscript)):
            index = inner.slice[0].slice if isinstance(inner, cst.Subscript) and len(inner.slice) == 1 else None
            name = index.value.value if isinstance(index, cst.Index) and isinstance(index.value, cst.Name) else None
            if isinstance(inner, cst.Subscript) and name is not None:
                kept = dotted(inner.value) is not None and not self._named_here((dotted(inner.value) or "").split(".")[0])
                loops = [loop for loop in self.loops(node) if self._loop(loop, name) is not None]
                return Sample(self.file.text(node), name, loops[0]) if kept and loops else None
            if isinstance(inner, cst.Subscript) and not (isinstance(index, cst.Index) and literal(index.value) is not UNKNOWN):
                return None
            inner = inner.value
        return None

    def _named_here(self, name: str) -> bool:
        """Whether the function gives `name` a value of its own."""
        stores = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.Element, cst.AsName, cst.NamedExpr)
        return any(
            node.value == name and isinstance(self.file.parent(node), stores) and node is not getattr(self.file.parent(node), "value", None)
            for node in descendants(self.function.body, cst.Name)
        )

    def _origin(self, node: cst.BaseExpression, root: cst.Name, depth: int) -> Sample | None:
        for loop in self.loops(node):
            target = self._loop(loop, root.value)
            counter = _counter(node, root)
            counted = self._loop(loop, counter) if target is None and counter is not None and root.value in self.lists else None
            if counter is not None and counted is not None and counted[0] == counter:
                return Sample(self.file.text(node), counter, loop) if _steps(node, counter) else None
            if target is not None:
                again = self._stored(loop, root.value) if isinstance(loop, cst.For) else []
                found = Sample(self.file.text(node), root.value, loop, cut=_cuts(again), remade=bool(again))
                return found if _steps(node, None) else None
            if isinstance(loop, cst.For):
                origins = self._origins(loop, root.value)
                if len(origins) == 1 and _steps(node, None):
                    found = self._sample(origins[0], depth + 1)
                    if found is None:
                        return None
                    rest = self.file.text(node)[len(root.value) :]
                    again = [value for value in self._stored(loop, root.value) if value is not origins[0]]
                    if rest and (found.remade or found.cut):
                        return None
                    return replace(found, text=found.text + rest, cut=found.cut or _cuts(again), remade=found.remade or bool(again))
        return None

    def _origins(self, loop: cst.For, name: str) -> list[cst.BaseExpression]:
        """What `loop` assigns to the local `name`, without what only cuts or converts it."""
        return [value for value in self._stored(loop, name) if not keeps_length(self.file, value, {name})]

    @staticmethod
    def _stored(loop: cst.For, name: str) -> list[cst.BaseExpression]:
        return [each.value for each in descendants(loop.body, cst.Assign) if any(dotted(t.target) == name for t in each.targets)]

    def _named_length(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """What a local name was assigned, for `n = len(x)` and `n = min(len(x), WIDTH)`; `node` itself otherwise."""
        if isinstance(node, cst.Name):
            for loop in self.loops(node):
                values = self._origins(loop, node.value) if isinstance(loop, cst.For) else []
                if len(values) == 1:
                    return values[0]
        return node


def measured(file: PythonFile, node: cst.BaseExpression) -> tuple[tuple[str, str], cst.BaseExpression | None]:
    """How `node` measures a length, and of what: `len(x)`, `x.shape[0]`, `x.size(-1)`, `x.numel()`, and the least of one and a limit."""
    if isinstance(node, cst.Call) and dotted(node.func) == "min" and len(node.args) == 2:
        for arg in node.args:
            found = measured(file, arg.value)
            if found[1] is not None:
                return found
    found = size_of(node)
    if found is not None and isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return ("len(", ")"), found[0]
    method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    base = node.func.value if method and node.func.attr.value == "numel" and not node.args else None  # type: ignore[attr-defined]
    base = found[0] if found is not None and found[1] in (0, -1) else base
    if base is not None:
        return ("", file.raw[file.span(base)[1] : file.span(node)[1]].decode()), base
    return ("", ""), None


def keeps_length(file: PythonFile, value: cst.BaseExpression, names: set[str]) -> bool:
    """Whether `value` is one of the samples `names`, made a tensor or cut: never longer than it."""
    if isinstance(value, cst.Call) and file.full_name(value.func) in REMADE:
        return bool(value.args) and keeps_length(file, value.args[0].value, names)
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in UNCHANGED:
        return keeps_length(file, value.func.value, names)
    if isinstance(value, cst.Subscript) and len(value.slice) == 1 and isinstance(value.slice[0].slice, cst.Slice):
        return value.slice[0].slice.step is None and keeps_length(file, value.value, names)
    return dotted(value) in names


def longest(lengths: list[Length]) -> str:
    """An expression with the greatest of all `lengths`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in lengths:
        texts = groups.setdefault((each.target, each.batch), [])
        texts += [] if each.text in texts else [each.text]
    parts = []
    for (target, batch), texts in groups.items():
        one = texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"
        parts.append(f"max({one} for {target} in {batch})")
    if not parts:
        raise refuse("no length of a sample is known")
    return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"


def _cuts(values: list[cst.BaseExpression]) -> bool:
    return any(True for value in values for _ in descendants(value, cst.Slice))


def _bounded(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func) == "min"


def _pairs(target: cst.BaseExpression, source: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What goes through what: each target of `enumerate` and `zip`, also of one in the other, with its own list."""
    plain = elements_of(target)
    if not isinstance(source, cst.Call) or dotted(source.func) not in ("enumerate", "zip"):
        return [(target, source)]
    given = [arg.value for arg in source.args if arg.keyword is None and not arg.star]
    if dotted(source.func) == "enumerate":
        return _pairs(plain[1], given[0]) if len(plain) == 2 and given else []
    return [pair for part, inner in zip(plain, given, strict=False) for pair in _pairs(part, inner)] if len(plain) > 1 else []


def _names(target: cst.BaseExpression) -> set[str]:
    return {node.value for node in descendants(target, cst.Name)}


def _root(node: cst.BaseExpression) -> cst.Name | None:
    """The name that a chain of attributes and keys begins with."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node if isinstance(node, cst.Name) else None


def _steps(node: cst.BaseExpression, counter: str | None) -> bool:
    """Whether a chain goes only through attributes and typed keys, and the loop's own `counter`."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice if len(node.slice) == 1 else None
            typed = isinstance(index, cst.Index) and isinstance(index.value, (cst.SimpleString, cst.Integer))
            if not typed and not (counter and isinstance(index, cst.Index) and dotted(index.value) == counter):
                return False
        node = node.value
    return True


def _counter(node: cst.BaseExpression, root: cst.Name) -> str | None:
    """`i` in `batch[i]` and `batch[i]["ids"]`."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Subscript) and node.value is root and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            return dotted(node.slice[0].slice.value)
        node = node.value
    return None
