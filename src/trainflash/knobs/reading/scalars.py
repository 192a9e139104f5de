"""Python that updates parameters, carried out on plain numbers: what an optimizer written by hand computes, without running anybody's code.

Each tensor is one number; operations that treat all elements alike are understood, and nothing else is. Whatever is not understood ends the
attempt with `NotUnderstood`, never with a guess.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

FUEL = 20_000  # own: expressions that one attempt may carry out
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.Mod: operator.mod, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, of: item in of, ast.NotIn: lambda item, of: item not in of,
}  # fmt: skip
ELEMENTWISE: dict[str, Callable[..., float]] = {
    "add": lambda x, y, alpha=1.0: x + alpha * y,
    "sub": lambda x, y, alpha=1.0: x - alpha * y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "square": lambda x: x * x,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "neg": lambda x: -x,
    "abs": abs,
    "clone": lambda x: x,
    "lerp": lambda x, end, weight: x + weight * (end - x),
    "addcmul": lambda x, y, z, value=1.0: x + value * y * z,
    "addcdiv": lambda x, y, z, value=1.0: x + value * y / z,
    "maximum": max,
    "minimum": min,
    "zeros_like": lambda x: 0.0,
    "ones_like": lambda x: 1.0,
    "full_like": lambda x, value: value,
    "copy": lambda x, y: y,
    "fill": lambda x, y: y,
    "zero": lambda x: 0.0,
}
IN_PLACE_ONLY = {"copy", "fill", "zero"}
FORM = {"memory_format", "dtype", "device", "requires_grad", "non_blocking"}  # arguments that say how a tensor is held
SAME_MEMORY = {"detach", "view_as", "contiguous"}
BUILT_IN: dict[str, Callable[..., Any]] = {
    "len": len, "float": float, "int": int, "max": max, "min": min, "abs": abs, "zip": lambda *of: list(zip(*of, strict=False)),
    "enumerate": lambda of, start=0: list(enumerate(of, start)), "range": lambda *of: list(range(*of)), "dict": dict, "list": list,
    "tuple": tuple,
}  # fmt: skip
MATH = {"sqrt": math.sqrt, "pow": math.pow}
CONTEXTS = ("torch.no_grad", "torch.enable_grad", "torch.inference_mode")


class NotUnderstood(Exception):
    """`node` is more than is understood here."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(ast.unparse(node) if isinstance(node, (ast.expr, ast.stmt)) else type(node).__name__)
        self.line = getattr(node, "lineno", 0)


@dataclass(eq=False)
class Cell:
    """A tensor of which one element is looked at."""

    value: float
    grad: Cell | None = None


@dataclass(eq=False)
class Optimizer:
    """An object of a class derived from `torch.optim.Optimizer`."""

    methods: dict[str, ast.FunctionDef]
    attributes: dict[str, Any] = field(default_factory=dict)


class _Returned(Exception):
    pass


class _Continued(Exception):
    pass


class _Broken(Exception):
    pass


class Machine:
    """Carries out methods of one class. `imported` maps names to what they stand for, as in `{"F": "torch.nn.functional"}`."""

    def __init__(self, owner: ast.ClassDef, imported: dict[str, str]) -> None:
        self._methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
        self._imported = imported
        self._fuel = FUEL

    def make(self, parameters: Sequence[Cell], options: dict[str, Any]) -> Optimizer:
        """The object that the constructor makes. Raises `NotUnderstood`."""
        made = Optimizer(self._methods)
        if "__init__" not in self._methods:
            raise NotUnderstood(ast.Pass())
        self.call(made, "__init__", [list(parameters)], options)
        if "param_groups" not in made.attributes:
            raise NotUnderstood(self._methods["__init__"])
        return made

    def call(self, of: Optimizer, name: str, given: Sequence[Any] = (), named: dict[str, Any] | None = None) -> Any:
        """What the method returns. Raises `NotUnderstood`."""
        function = of.methods[name]
        static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
        names = self._bound(function, [*given] if static else [of, *given], named or {})
        try:
            self._run(function.body, names)
        except _Returned as returned:
            return returned.args[0]
        return None

    def _bound(self, function: ast.FunctionDef, given: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        if function.args.vararg or function.args.kwarg or len(given) > len(function.args.args):
            raise NotUnderstood(function)
        places, defaults = signature(function)
        names = dict(zip(places, given, strict=False)) | named
        for name in places:
            if name not in names:
                if name not in defaults:
                    raise NotUnderstood(function)
                names[name] = self._value(defaults[name], {})
        return names

    def _run(self, body: Sequence[ast.stmt], names: dict[str, Any]) -> None:
        for statement in body:
            self._statement(statement, names)

    def _statement(self, node: ast.stmt, names: dict[str, Any]) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Assert():
                return
            case ast.Expr(value=value):
                self._value(value, names)
            case ast.Assign(targets=targets, value=value):
                given = self._value(value, names)
                for target in targets:
                    self._assign(target, given, names)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, self._value(value, names), names)
            case ast.AugAssign(target=target, op=op, value=value):
                self._augment(target, op, self._value(value, names), names)
            case ast.If(test=test, body=body, orelse=other):
                self._run(body if self._truth(test, names) else other, names)
            case ast.For(target=target, iter=of, body=body, orelse=[]):
                self._loop(target, self._value(of, names), body, names)
            case ast.With(items=items, body=body) if all(self._is_context(each) for each in items):
                self._run(body, names)
            case ast.Return(value=value):
                raise _Returned(None if value is None else self._value(value, names))
            case ast.Continue():
                raise _Continued
            case ast.Break():
                raise _Broken
            case _:
                raise NotUnderstood(node)

    def _loop(self, target: ast.expr, of: Any, body: Sequence[ast.stmt], names: dict[str, Any]) -> None:
        if not isinstance(of, (list, tuple)):
            raise NotUnderstood(target)
        for each in of:
            self._assign(target, each, names)
            try:
                self._run(body, names)
            except _Continued:
                continue
            except _Broken:
                return

    def _is_context(self, item: ast.withitem) -> bool:
        call = item.context_expr
        return item.optional_vars is None and isinstance(call, ast.Call) and self._full(call.func) in CONTEXTS

    def _assign(self, target: ast.expr, given: Any, names: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = given
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(given, (list, tuple)) and len(parts) == len(given):
                for part, value in zip(parts, given, strict=True):
                    self._assign(part, value, names)
            case ast.Subscript(value=of, slice=key):
                self._item(of, names)[self._key(key, names)] = given
            case ast.Attribute(value=of, attr="data"):
                cell = self._value(of, names)
                if not isinstance(cell, Cell):
                    raise NotUnderstood(target)
                cell.value = self._number(given, target)
            case ast.Attribute(value=of, attr=name) if isinstance(owner := self._value(of, names), Optimizer):
                owner.attributes[name] = given
            case _:
                raise NotUnderstood(target)

    def _augment(self, target: ast.expr, op: ast.operator, given: Any, names: dict[str, Any]) -> None:
        before = self._value(_loaded(target), names)
        after = self._binary(op, before, given, target)
        if isinstance(before, Cell):
            before.value = self._number(after, target)
        else:
            self._assign(target, after, names)

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        self._fuel -= 1
        if self._fuel < 0:
            raise NotUnderstood(node)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.Tuple(elts=parts):
                return tuple(self._value(part, names) for part in parts)
            case ast.List(elts=parts):
                return [self._value(part, names) for part in parts]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self._key(key, names): self._value(value, names) for key, value in zip(keys, values, strict=True)}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._binary(ast.Mult(), -1.0, self._value(operand, names), node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._truth(operand, names)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left, names), self._value(right, names), node)
            case ast.BoolOp() | ast.Compare():
                return self._truth(node, names)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._value(body if self._truth(test, names) else other, names)
            case ast.Subscript(value=of, slice=key):
                return self._at(node, self._item(of, names), self._key(key, names))
            case ast.Attribute():
                return self._attribute(node, names)
            case ast.Call():
                return self._called(node, names)
            case ast.ListComp(elt=element, generators=[ast.comprehension(target=target, iter=of, ifs=tests, is_async=0)]):
                return list(self._each(element, target, self._value(of, names), tests, names))
            case _:
                raise NotUnderstood(node)

    def _each(self, element: ast.expr, target: ast.expr, of: Any, tests: list[ast.expr], names: dict[str, Any]) -> Iterator[Any]:
        if not isinstance(of, (list, tuple)):
            raise NotUnderstood(element)
        for each in of:
            inner = dict(names)
            self._assign(target, each, inner)
            if all(self._truth(test, inner) for test in tests):
                yield self._value(element, inner)

    def _item(self, node: ast.expr, names: dict[str, Any]) -> Any:
        of = self._value(node, names)
        if not isinstance(of, (dict, list, tuple)):
            raise NotUnderstood(node)
        return of

    def _at(self, node: ast.expr, of: Any, key: Any) -> Any:
        if isinstance(of, _States):
            return of.setdefault(key, {})
        try:
            return of[key]
        except (KeyError, IndexError, TypeError):
            raise NotUnderstood(node) from None

    def _key(self, node: ast.expr | None, names: dict[str, Any]) -> Any:
        key = self._value(node, names) if node is not None else None
        if not isinstance(key, (str, int, Cell)):
            raise NotUnderstood(node or ast.Pass())
        return key

    def _attribute(self, node: ast.Attribute, names: dict[str, Any]) -> Any:
        of = self._value(node.value, names)
        if isinstance(of, Optimizer) and node.attr in of.attributes:
            return of.attributes[node.attr]
        if isinstance(of, Cell) and node.attr in ("grad", "data", "is_sparse"):
            return {"grad": of.grad, "data": of, "is_sparse": False}[node.attr]
        raise NotUnderstood(node)

    def _truth(self, node: ast.expr, names: dict[str, Any]) -> bool:
        if isinstance(node, ast.BoolOp):
            found = (self._truth(each, names) for each in node.values)
            return all(found) if isinstance(node.op, ast.And) else any(found)
        if isinstance(node, ast.Compare):
            parts = [self._value(each, names) for each in (node.left, *node.comparators)]
            for op, left, right in zip(node.ops, parts[:-1], parts[1:], strict=True):
                if isinstance(op, (ast.Is, ast.IsNot)) or not (isinstance(left, Cell) or isinstance(right, Cell)):
                    if not COMPARED[type(op)](left, right):
                        return False
                else:
                    raise NotUnderstood(node)  # elements may differ
            return True
        value = self._value(node, names)
        if isinstance(value, Cell):
            raise NotUnderstood(node)
        return bool(value)

    def _binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        compute = BINARY.get(type(op))
        if compute is None:
            raise NotUnderstood(node)
        if isinstance(left, dict) and isinstance(right, dict) and isinstance(op, ast.BitOr):
            return {**left, **right}
        try:
            result = compute(self._number(left, node), self._number(right, node))
        except (ArithmeticError, ValueError):
            raise NotUnderstood(node) from None
        return Cell(result) if isinstance(left, Cell) or isinstance(right, Cell) else result

    def _number(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, Cell):
            return value.value
        if isinstance(value, (int, float)):
            return value
        raise NotUnderstood(node)

    def _called(self, node: ast.Call, names: dict[str, Any]) -> Any:
        if any(each.arg is None for each in node.keywords) or any(isinstance(each, ast.Starred) for each in node.args):
            raise NotUnderstood(node)
        if isinstance(node.func, ast.Attribute) and _is_super(node.func.value):
            return self._base(node, names)
        given = [self._value(each, names) for each in node.args]
        named = {str(each.arg): self._value(each.value, names) for each in node.keywords if each.arg not in FORM}
        full = self._full(node.func)
        module, _, last = (full or "").rpartition(".")
        if module == "torch" and last in ELEMENTWISE and last not in IN_PLACE_ONLY:
            return self._elementwise(node, last, given, named)
        if module == "math" and last in MATH:
            return self._plain(node, MATH[last], given, named)
        if isinstance(node.func, ast.Name) and node.func.id in BUILT_IN and node.func.id not in names:
            return self._plain(node, BUILT_IN[node.func.id], given, named)
        if not isinstance(node.func, ast.Attribute):
            raise NotUnderstood(node)
        return self._method(node, self._value(node.func.value, names), node.func.attr, given, named)

    def _method(self, node: ast.Call, of: Any, name: str, given: list[Any], named: dict[str, Any]) -> Any:
        if isinstance(of, Optimizer) and name in of.methods:
            return self.call(of, name, given, named)
        if isinstance(of, Cell):
            if name in SAME_MEMORY:
                return of
            plain = name.removesuffix("_")
            if plain not in ELEMENTWISE or (name == plain and plain in IN_PLACE_ONLY):
                raise NotUnderstood(node)
            result = self._elementwise(node, plain, [of, *given], named)
            if name == plain:
                return result
            of.value = result.value
            return of
        if isinstance(of, dict) and name in ("get", "setdefault", "items", "keys", "values"):
            return list(getattr(of, name)()) if name in ("items", "keys", "values") else getattr(of, name)(*given)
        if isinstance(of, dict) and name == "update" and all(isinstance(each, dict) for each in given):
            of.update(*given, **named)
            return None
        if isinstance(of, list) and name == "append":
            of.append(given[0])
            return None
        raise NotUnderstood(node)

    def _elementwise(self, node: ast.Call, name: str, given: list[Any], named: dict[str, Any]) -> Cell:
        numbers = [self._number(each, node) for each in given]
        try:
            return Cell(ELEMENTWISE[name](*numbers, **{key: self._number(value, node) for key, value in named.items()}))
        except (ArithmeticError, ValueError, TypeError):
            raise NotUnderstood(node) from None

    def _plain(self, node: ast.Call, function: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> Any:
        if any(isinstance(each, Cell) for each in (*given, *named.values())):
            raise NotUnderstood(node)
        try:
            return function(*given, **named)
        except (ArithmeticError, ValueError, TypeError):
            raise NotUnderstood(node) from None

    def _base(self, node: ast.Call, names: dict[str, Any]) -> None:
        """`super().__init__(params, defaults)`, what `torch.optim.Optimizer` does of it."""
        of = names.get("self")
        if not isinstance(of, Optimizer) or node.func.attr != "__init__" or node.keywords or len(node.args) != 2:  # type: ignore[attr-defined]
            raise NotUnderstood(node)
        parameters, defaults = (self._value(each, names) for each in node.args)
        if not isinstance(parameters, list) or not isinstance(defaults, dict):
            raise NotUnderstood(node)
        of.attributes |= {"param_groups": [{**defaults, "params": parameters}], "state": _States(), "defaults": defaults}

    def _full(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute):
            base = self._full(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return self._imported.get(node.id) if isinstance(node, ast.Name) else None


class _States(dict):
    """What an optimizer keeps for each parameter, made when it is asked for."""


def signature(function: ast.FunctionDef) -> tuple[list[str], dict[str, ast.expr]]:
    """Names of the parameters in order, and the defaults of those that have one."""
    of = function.args
    places, named = [each.arg for each in of.args], [each.arg for each in of.kwonlyargs]
    defaults = dict(zip(places[len(places) - len(of.defaults) :], of.defaults, strict=True))
    return [*places, *named], defaults | {name: value for name, value in zip(named, of.kw_defaults, strict=True) if value is not None}


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _loaded(target: ast.expr) -> ast.expr:
    """An assignment's target as an expression that is read."""
    return ast.parse(ast.unparse(target), mode="eval").body
