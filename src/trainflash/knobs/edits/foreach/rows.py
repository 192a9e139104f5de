"""Statements about one tensor of each turn of a loop, as operations on lists of the tensors of all turns.

`m.mul_(beta).add_(grad, alpha=1 - beta)` is `torch._foreach_mul_(ms, beta)` and `torch._foreach_add_(ms, grads, alpha=1 - beta)`: each of
torch's list operations does to every tensor what its namesake does to one, in the same order, so that the numbers stay the same. What has
no list operation is written as a comprehension, or as a loop of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from trainflash.knobs.edits.foreach.operations import ALONE, GRADIENT_MODES, IN_PLACE, NO_METHOD, WITH_ONE, WITH_TWO
from trainflash.knobs.edits.foreach.values import Value, Values, parts_of, words_of
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import descendants


class Rows(Values):
    """Translates statements, one after the other."""

    def of(self, lines: Iterable[cst.CSTNode], indent: str) -> list[str]:
        """Rows of source for `lines`. Raises `UsageError` for one that is not understood."""
        rows: list[str] = []
        for line in lines:
            rows += [f"{indent}{comment}" for comment in _comments(line)]
            if isinstance(line, cst.If):
                rows += self._branch(line, indent)
            elif isinstance(line, cst.With):
                rows += self._context(line, indent)
            elif isinstance(line, cst.SimpleStatementLine):
                rows += [f"{indent}{row}" for small in line.body for row in self._small(small)]
            else:
                raise self._strange(line)
        return rows

    def _branch(self, line: cst.If, indent: str) -> list[str]:
        if self._mentions(line.test) or any(descendants(line.test, (cst.Call, cst.NamedExpr, cst.Await))):
            raise refuse(f"{self.file.location(line)}: `{self.file.text(line.test)}` may be another answer in each turn")
        deeper = indent + self.file.module.default_indent
        before = dict(self.now)
        body = self.of(line.body.body, deeper) or [f"{deeper}pass"]
        rows = [f"{indent}if {self.file.outer_text(line.test)}:", *body]
        if isinstance(line.orelse, cst.If):
            rest = self._branch(line.orelse, indent)
            rows += [f"{indent}el{rest[0].lstrip()}", *rest[1:]]
        elif line.orelse is not None:
            rows += [f"{indent}else:", *self.of(line.orelse.body.body, deeper)]
        self._after_branch(before)
        return rows

    def _after_branch(self, before: dict[str, str]) -> None:
        """What only one branch has given a list is not known behind it."""
        for text, held in list(self.now.items()):
            if before.get(text) != held and self.collected.get(text) != held:
                del self.now[text]
                self.rebound.update(words_of(text)[:1])
        self.rebound.update(word for text in before.keys() - self.now.keys() for word in words_of(text)[:1])

    def _context(self, line: cst.With, indent: str) -> list[str]:
        for item in line.items:
            if not isinstance(item.item, cst.Call) or self.file.full_name(item.item.func) not in GRADIENT_MODES:
                raise self._strange(line)
        header = self.file.text(line).split(":", 1)[0]
        return [f"{indent}{header}:", *self.of(line.body.body, indent + self.file.module.default_indent)]

    # Statements ---------------------------------------------------------------------------------------------------------------------

    def _small(self, small: cst.BaseSmallStatement) -> list[str]:
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._in_place(small)
        if isinstance(small, cst.AugAssign):
            return self._augmented(small)
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            return [row for target, value in self._pairs(small) for row in self._assigned(small, target, value)]
        raise self._strange(small)

    def _pairs(self, small: cst.Assign) -> list[tuple[cst.BaseAssignTargetExpression, cst.BaseExpression]]:
        """Each target and what it is given: of `a, b = x, y` one after the other, where `y` does not read `a`."""
        target, value = small.targets[0].target, small.value
        if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple) or len(target.elements) != len(value.elements):
            return [(target, value)]
        parts = [(part.value, given.value) for part, given in zip(target.elements, value.elements, strict=True)]
        for number, (part, _) in enumerate(parts):
            name = part.value if isinstance(part, cst.Name) else None
            if name is None or any(node.value == name for _, later in parts[number + 1 :] for node in descendants(later, cst.Name)):  # type: ignore[attr-defined]
                raise self._strange(small)
        return parts  # type: ignore[return-value]

    def _in_place(self, small: cst.Expr) -> list[str]:
        """`x.mul_(a).add_(y, alpha=b)`: one row for each call."""
        calls, base = [], small.value
        while isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value.endswith("_"):
            calls.insert(0, base)
            base = base.func.value
        if not calls or self._part(base) is None:
            raise self._strange(small)
        before = self._state()
        rows = self._called_in_place(base, calls) if all(self._has_form(call) for call in calls) else None
        if rows is None:
            self._restore(before)
            return self._turn(small)
        return rows

    def _called_in_place(self, base: cst.BaseExpression, calls: list[cst.Call]) -> list[str] | None:
        held = self._list(base)
        self.tensors.add(held)
        rows = []
        for call in calls:
            name = call.func.attr.value  # type: ignore[union-attr]
            given = self._given(name[:-1], call, call.args)
            if given is None:
                return None
            self.operations += 1
            rows.append(f"{self.torch}_foreach_{name}({', '.join((held, *given))})")
        return rows

    def _has_form(self, call: cst.Call) -> bool:
        name = call.func.attr.value[:-1]  # type: ignore[union-attr]
        return name in ("copy", "zero") or (name in ALONE | WITH_ONE | WITH_TWO and name not in NO_METHOD)

    def _augmented(self, small: cst.AugAssign) -> list[str]:
        """`x += y` changes the tensor `x`; a number that is kept under a key is counted in a loop of its own."""
        name, target = IN_PLACE.get(type(small.operator)), small.target
        if self._part(target) is None:
            raise self._strange(small)
        if not self._tensor(target):
            if isinstance(target, cst.Name):
                raise self._strange(small)
            return self._turn(small)
        before = self._state()
        value = self.value(small.value)
        if name is None or value.kind == "parts":
            self._restore(before)
            return self._turn(small)
        self.operations += 1
        return [f"{self.torch}_foreach_{name}_({self._list(target)}, {value.text})"]

    def _assigned(self, small: cst.Assign, target: cst.BaseAssignTargetExpression, given: cst.BaseExpression) -> list[str]:
        value = self.value(given)
        if isinstance(target, cst.Name):
            name = target.value
            if value.kind == "same":
                if name in self.own or name in self.made:
                    raise self._strange(small)
                self.kept.add(name)
                return [f"{name} = {value.text}"]
            if name in self.kept:
                raise self._strange(small)
            held = self.made.get(name) or (self._list(target) if name in self.own else self._fresh(name))
            self.made[name] = self.now[name] = held
            self._holds(held, value)
            return [] if held == value.text else [f"{held} = {value.text}"]
        root = self._root(target)
        if root is None or self._part(target) is None:
            raise self._strange(small)
        owners = self._list(root)
        self.turned.add(root.value)
        self._rebind(self.file.text(target))
        if value.kind == "same":
            return [f"for {root.value} in {owners}:", f"{self.file.module.default_indent}{self.file.text(target)} = {value.text}"]
        held = self._fresh(f"new_{words_of(self.file.text(target))[0]}")
        one = held[:-1] if held.endswith("s") else f"{held}_one"
        self.now[self.file.text(target)] = held
        self._holds(held, value)
        loop = f"for {root.value}, {one} in zip({owners}, {held}):"
        return [f"{held} = {value.text}", loop, f"{self.file.module.default_indent}{self.file.text(target)} = {one}"]

    def _rebind(self, text: str) -> None:
        """An attribute or key means something else from here on: lists of what it was are not read any more."""
        words = set(words_of(text)[:1]) | set(re.findall(r"\w+", text)[-1:]) - self.keys
        words |= {"detach"} if "data" in words else set()
        self.rebound |= words
        self.now = {other: held for other, held in self.now.items() if other.isidentifier() or not words & parts_of(other)}

    def _holds(self, held: str, value: Value) -> None:
        if value.kind == "tensors":
            self.tensors.add(held)
        else:
            self.tensors.discard(held)

    def _turn(self, small: cst.BaseSmallStatement) -> list[str]:
        """A statement as it is, in a loop of its own."""
        self._harmless(small)
        self._steady(small)
        names = self._names(small)
        if not names:
            raise self._strange(small)
        self.loops += 1
        self.turned.update(names)
        if isinstance(small, cst.AugAssign):
            self._rebind(self.file.text(small.target))
        return [f"for {', '.join(names)} in {self._zipped(names)}:", f"{self.file.module.default_indent}{self.file.text(small)}"]


def _comments(line: cst.CSTNode) -> list[str]:
    """Comments above `line` and behind it."""
    above = [each.comment.value for each in getattr(line, "leading_lines", ()) if each.comment is not None]
    behind = getattr(getattr(line, "trailing_whitespace", None), "comment", None)
    return above + ([behind.value] if behind is not None else [])
