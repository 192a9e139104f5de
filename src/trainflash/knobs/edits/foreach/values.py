"""Expressions about one tensor of each turn of a loop, as expressions about the lists of all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from keyword import iskeyword as keyword_of_python
from typing import Any, Literal

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.foreach.operations import (
    ALONE,
    ASKS,
    OPERATORS,
    PLAIN,
    SCALED,
    SHORT,
    TENSOR_METHODS,
    VIEWS,
    WITH_ONE,
    WITH_TWO,
)  # fmt: skip
from trainflash.knobs.effects.purity import RANDOM_METHODS
from trainflash.knobs.reading.expressions import is_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, string_value


@dataclass(frozen=True)
class Value:
    """Source of an expression: the `same` for all turns, or a list of `tensors`, of `items` that are alike and may be numbers, or of
    `parts` of the turns of which nothing is known."""

    text: str
    kind: Literal["same", "tensors", "items", "parts"]


@dataclass
class Values:
    """Translates expressions. `own` are names that each turn sets in front of them, `keys` those of them that are distinct keys."""

    file: PythonFile
    torch: str  # how the file spells torch, with the dot
    own: frozenset[str]
    keys: frozenset[str]
    taken: frozenset[str]  # names that mean something in the function
    known: frozenset[str]  # source of what is certainly a tensor
    known_lists: frozenset[str]  # source of what holds nothing but tensors
    collected: dict[str, str] = field(default_factory=dict)  # source of what a turn gives to a list → the list
    now: dict[str, str] = field(default_factory=dict)  # source → the list that holds it now
    kept: set[str] = field(default_factory=set)  # names set here, to the same value for all turns
    made: dict[str, str] = field(default_factory=dict)  # names set here, one for each turn → their list
    tensors: set[str] = field(default_factory=set)  # lists that hold tensors
    unsteady: frozenset[str] = frozenset()  # attributes and keys that the loop sets in front of the statements
    rebound: set[str] = field(default_factory=set)  # attributes and keys that the statements give to something else
    handed: set[str] = field(default_factory=set)  # names of lists that were given
    turned: set[str] = field(default_factory=set)  # names that a loop of its own goes over
    operations: int = 0
    loops: int = 0  # what is still done one by one

    def _strange(self, node: cst.CSTNode) -> Exception:
        return refuse(f"{self.file.location(node)}: `{first_line(self.file.text(node))}` is not understood as an operation on tensors")

    def _state(self) -> tuple[Any, ...]:
        return dict(self.collected), dict(self.now), set(self.tensors), set(self.handed), self.operations, self.loops

    def _restore(self, state: tuple[Any, ...]) -> None:
        self.collected, self.now, self.tensors, self.handed, self.operations, self.loops = state

    def _stale(self, text: str) -> bool:
        return not text.isidentifier() and bool(self.rebound & parts_of(text))

    # Expressions --------------------------------------------------------------------------------------------------------------------

    def value(self, node: cst.BaseExpression) -> Value:
        """What `node` is for all turns. Raises `UsageError` where working it out may have an effect, or draws random numbers."""
        if not self._mentions(node):
            called = [self.file.full_name(call.func) or "?" for call in descendants(node, cst.Call)]  # type: ignore[attr-defined]
            if any(not name.startswith("math.") and name not in PLAIN for name in called):
                raise self._strange(node)
            self._steady(node)
            return Value(self.file.outer_text(node), "same")
        if self._part(node) is not None:
            if self._stale(self.file.text(node)) and self.file.text(node) not in self.now:
                return self._each(node)
            held = self._list(node)
            return Value(held, "tensors" if self._tensor(node) else "items" if held in self.made.values() else "parts")
        before = self._state()
        try:
            written = self._written(node)
        except UsageError:
            written = None
        if written is not None:
            self.operations += 1
            return Value(self.torch + written, "tensors")
        self._restore(before)
        return self._each(node)

    def _written(self, node: cst.BaseExpression) -> str | None:
        """The list operation that does what `node` says, without torch's name; None where there is none."""
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            inner = self.value(node.expression)
            return f"_foreach_neg({inner.text})" if inner.kind == "tensors" else None
        return self._called(node) if isinstance(node, cst.Call) else None

    def _steady(self, node: cst.CSTNode) -> None:
        """Raises `UsageError` where the loop sets an attribute or key that `node` reads beside the turn's own parts."""
        for each in descendants(node, (cst.Attribute, cst.Subscript)):
            if not self._mentions(each) and parts_of(self.file.text(each)) & self.unsteady:
                raise refuse(f"{self.file.location(each)}: `{self.file.text(each)}` may be another one in each turn")

    def _binary(self, node: cst.BinaryOperation) -> str | None:
        name = OPERATORS.get(type(node.operator))
        left, right = self.value(node.left), self.value(node.right)
        if name is None or "parts" in (left.kind, right.kind):
            return None
        if left.kind == "tensors":
            return f"_foreach_{name}({left.text}, {right.text})"
        if left.kind != "same" or right.kind != "tensors":
            return None
        return f"_foreach_{name}({right.text}, {left.text})" if name in ("add", "mul") else None

    def _called(self, call: cst.Call) -> str | None:
        """A method of a tensor, or the function of torch's by that name, that has a list operation."""
        full = self.file.full_name(call.func) or ""
        args: Sequence[cst.Arg] = call.args
        if full.startswith("torch.") and full.count(".") == 1 and args and args[0].keyword is None and not args[0].star:
            name, base, args = full.removeprefix("torch."), args[0].value, args[1:]
        elif isinstance(call.func, cst.Attribute):
            name, base = call.func.attr.value, call.func.value
        else:
            return None
        if name not in ALONE | WITH_ONE | WITH_TWO | {"clamp"} or not self._mentions(base):
            return None
        held = self.value(base)
        if name == "clamp":
            return self._clamped(held, args)
        given = self._given(name, call, args)
        return None if held.kind != "tensors" or given is None else f"_foreach_{name}({', '.join((held.text, *given))})"

    def _clamped(self, held: Value, args: Sequence[cst.Arg]) -> str | None:
        """`x.clamp(a, b)`: not below `a`, then not above `b`."""
        text = held.text
        for place, name in enumerate(("min", "max")):
            found = [arg for at, arg in enumerate(args) if (arg.keyword.value == name if arg.keyword is not None else at == place)]
            if not found or dotted(found[0].value) == "None":
                continue
            bound = self.value(found[0].value)
            if bound.kind != "same" or found[0].star:
                return None
            text = f"{self.torch}_foreach_clamp_{name}({text}, {bound.text})"
        return text.removeprefix(self.torch) if held.kind == "tensors" and text is not held.text else None

    def _given(self, name: str, call: cst.Call, args: Sequence[cst.Arg]) -> list[str] | None:
        """Source of the other arguments of a list operation; None where they are others than it takes."""
        plain = [arg.value for arg in args if arg.keyword is None and not arg.star]
        option = {"add": "alpha", "sub": "alpha", "addcmul": "value", "addcdiv": "value"}.get(name)
        scale = keyword(call, option) if option is not None else None
        if len(plain) + (scale is not None) != len(args):
            return None
        wanted = 0 if name in ALONE or name == "zero" else 2 if name in WITH_TWO or name == "lerp" else 1
        if len(plain) != wanted:
            return None
        values = [self.value(node) for node in plain]
        tensors = 1 if name == "lerp" else wanted if name in {"copy", "maximum", "minimum"} | WITH_TWO else 0  # arguments that must be such
        told = wanted if scale is not None else tensors
        if any(value.kind == "same" for value in values[:tensors]) or any(value.kind == "parts" for value in values[told:]):
            return None
        given = [value.text for value in values]
        if scale is not None:
            by = self.value(scale.value)
            if by.kind == "items" and name in WITH_TWO:
                return [*given, by.text]  # a number for each
            if by.kind != "same" or (name in SCALED and values[0].kind not in ("tensors", "parts")):
                return None
            given.append(f"{option}={by.text}")
        return given

    def _each(self, node: cst.BaseExpression) -> Value:
        """A comprehension: of each turn what `node` says of it."""
        self._harmless(node)
        self._steady(node)
        names = self._names(node)
        self.loops += 1
        text = f"[{self.file.outer_text(node)} for {', '.join(names)} in {self._zipped(names)}]"
        return Value(text, "tensors" if self._gives_tensors(node) else "items")

    def _gives_tensors(self, node: cst.BaseExpression) -> bool:
        """Whether an operation without a list operation gives a tensor, as far as the source says."""
        if isinstance(node, cst.BinaryOperation):
            return self._gives_tensors(node.left) or self._gives_tensors(node.right)
        if not isinstance(node, cst.Call):
            return self._part(node) is not None and self._tensor(node)
        full = self.file.full_name(node.func) or ""
        if full.startswith("torch."):
            return full.split(".")[-1] not in ASKS
        func = node.func
        return isinstance(func, cst.Attribute) and func.attr.value not in ASKS and self._gives_tensors(func.value)

    def _harmless(self, node: cst.CSTNode) -> None:
        for call in descendants(node, cst.Call):
            name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or "?"  # type: ignore[attr-defined]
            full = self.file.full_name(call.func) or ""  # type: ignore[attr-defined]
            library = full.startswith(("torch.", "math.")) or full in PLAIN
            plain = name.removesuffix("_") in TENSOR_METHODS
            method = plain and isinstance(call.func, cst.Attribute) and self._mentions(call.func.value)  # type: ignore[attr-defined]
            if name in RANDOM_METHODS or not (library or method) or (name == "item" and isinstance(node, cst.BaseExpression)):
                raise refuse(f"{self.file.location(call)}: `{first_line(self.file.text(call))}` may have an effect of its own in each turn")
        if any(True for _ in descendants(node, (cst.Lambda, cst.Await, cst.Yield, cst.NamedExpr, cst.ListComp, cst.GeneratorExp))):
            raise self._strange(node)

    # Lists --------------------------------------------------------------------------------------------------------------------------

    def _names(self, node: cst.CSTNode) -> list[str]:
        """Names in `node` that each turn sets anew, with their lists collected."""
        found = {each.value: each for each in descendants(node, cst.Name) if is_name(self.file, each) and self._each_turn(each.value)}  # type: ignore[attr-defined,arg-type]
        for each in found.values():
            self._list(each)  # type: ignore[arg-type]
        return list(found)

    def _zipped(self, names: list[str]) -> str:
        lists = [self.now[name] for name in names]
        return lists[0] if len(lists) == 1 else f"zip({', '.join(lists)})"

    def _each_turn(self, name: str) -> bool:
        return name in self.own or name in self.made

    def _mentions(self, node: cst.CSTNode) -> bool:
        return any(self._each_turn(each.value) and is_name(self.file, each) for each in descendants(node, cst.Name))  # type: ignore[attr-defined,arg-type]

    def _part(self, node: cst.BaseExpression) -> str | None:
        """Source of what a turn has, when that is a name or a plain part of one: `p`, `p.grad`, `state["m"]`, `other[key]`; else None."""
        if isinstance(node, cst.Name):
            return node.value if self._each_turn(node.value) else None
        inner = node
        while (detached := _detached(inner)) is not None:
            inner = detached
        return self.file.text(node) if self._root(inner) is not None else None

    def _root(self, node: cst.BaseExpression) -> cst.Name | None:
        """The name that says which turn's `node` is: in front of attributes and written keys, or the key itself in `other[key].grad`."""
        while True:
            if isinstance(node, cst.Attribute):
                node = node.value
            elif isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
                key = node.slice[0].slice.value
                if isinstance(key, cst.Name) and key.value in self.keys:
                    return key if dotted(node.value) is not None and not self._mentions(node.value) else None
                if string_value(key) is None and not isinstance(literal(key), int):
                    return None
                node = node.value
            else:
                break
        return node if isinstance(node, cst.Name) and node.value in self.own and node.value not in self.made else None

    def _list(self, node: cst.BaseExpression) -> str:
        """The list that holds `node`, a part of each turn."""
        text = self.file.text(node)
        if text not in self.now:
            if self._stale(text) or text in self.made or text in self.rebound:
                raise refuse(f"{self.file.location(node)}: what `{text}` is by then depends on the statements in front of it")
            held = self._fresh(text)
            self.collected[text] = self.now[text] = held
            if self._tensor(node):
                self.tensors.add(held)
        return self.now[text]

    def _tensor(self, node: cst.BaseExpression) -> bool:
        text = self.file.text(node)
        held = self.now.get(text)
        if held is not None and held not in self.collected.values():
            return held in self.tensors
        if isinstance(node, cst.Subscript) and self.file.text(node.value) in self.known_lists:
            return True
        return text in self.known or text.endswith(tuple(f".{name}" for name in (*VIEWS, "detach()")))

    def _fresh(self, text: str) -> str:
        used = self.taken | self.handed
        names = [name for word in words_of(text) for name in (SHORT.get(word, _plural(word)), f"{word}_list")]
        free = next((name for name in names if name not in used and not keyword_of_python(name)), None)
        if free is None:
            raise refuse(f"the names {', '.join(names)} mean something else there")
        self.handed.add(free)
        return free


def _detached(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `x.detach()`."""
    func = node.func if isinstance(node, cst.Call) and not node.args else None
    return func.value if isinstance(func, cst.Attribute) and func.attr.value == "detach" else None


def parts_of(text: str) -> set[str]:
    """Attributes and keys in `text`."""
    return set(re.findall(r"\w+", text)[1:])


def words_of(text: str) -> list[str]:
    """Names for what `text` is, best first: `grad` and `p_grad` of `p.grad`, `p` of `p.data`, `shadow` of `self.shadow[name]`."""
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[A-Za-z_]\w*\]|\.detach\(\)|\bself\.", "", text))
    plain = [word for word in words if word not in ("data",)] or words
    return [plain[-1], "_".join(words[-2:]), "_".join(("all", *words[-2:]))]


def _plural(word: str) -> str:
    return f"{word}_list" if word.endswith("s") else f"{word}s"


def first_line(text: str) -> str:
    return text.splitlines()[0]
