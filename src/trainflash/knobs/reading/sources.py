"""Where a value comes from: from an argument back to the literal, option default or configuration key that somebody typed.

The rule that keeps edits right: a source is believed only if it is the only one, or the only one whose value is what the run saw.
Everything else is refused with the reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import libcst as cst
from libcst import metadata

from trainflash.errors import UsageError
from trainflash.knobs.project import Project, is_module
from trainflash.knobs.reading import callers, composed, hf_parser, lookups, text_configs, uses
from trainflash.knobs.reading.expressions import (
    UNKNOWN,
    argument_node,
    assigned,
    conjuncts,
    environment,
    fallback,
    given_to,
    index_of,
    literal,
    order,
    passed,
    refuse,
    short,
    spelled_value,
)  # fmt: skip
from trainflash.knobs.reading.named import Names
from trainflash.knobs.reading.origins import Source, pick
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, parameter, string_value
from trainflash.knobs.reading.uses import Use
from trainflash.knobs.splices import Splice
from trainflash.knobs.surfaces import options, shell
from trainflash.knobs.surfaces.words import value_of

ANY = "[…]"  # a key that the program computes
DEEPEST = 16  # own: real chains of names have up to six links
LOADS = {"load", "safe_load", "full_load", "unsafe_load", "loads"}
NOT_CONFIG = {"torch", "numpy", "pickle", "joblib", "safetensors", "librosa", "datasets"}
WRAPPERS = {
    "vars",
    "dict",
    "deepcopy",
    "copy",
    "AttrDict",
    "EasyDict",
    "DotDict",
    "Munch",
    "munchify",
    "Box",
    "Namespace",
    "SimpleNamespace",
}
WRAPPERS |= {"create", "to_container", "from_dict"}
PARSES = {"parse_args", "parse_known_args", "parse_intermixed_args", "parse"}
ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
}
COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
}


class Resolver:
    """Follows one value through the program. `expected` is what the run saw, `UNKNOWN` where it was not seen."""

    def __init__(self, project: Project, expected: Any = UNKNOWN) -> None:
        self.project = project
        self.expected = expected
        self._path: list[cst.CSTNode] = []  # what is being followed, from the first expression to the present one
        self._names = Names(self)

    def source(self, file: PythonFile, node: cst.BaseExpression, keys: tuple[str, ...] = ()) -> Source | None:
        """The source of `node`, or of what `keys` pick from it; None when it provably has no such key.

        Raises `UsageError` with the reason when the source is ambiguous, computed beyond following, or set by the command.
        """
        if len(self._path) >= DEEPEST:
            raise refuse(f"{file.location(node)}: the value goes through too many names to follow")
        self._path.append(node)
        try:
            return self._source(file, node, keys)
        finally:
            self._path.pop()

    def unseen(self) -> Resolver:
        """Follows another value of the program, which the run did not show, from the depth reached here."""
        other = Resolver(self.project)
        other._path = [*self._path, *self._path[-1:]]
        return other

    def _source(self, file: PythonFile, node: cst.BaseExpression, keys: tuple[str, ...]) -> Source | None:
        if not keys and literal(node) is not UNKNOWN:
            return self._literal(file, node)
        if isinstance(node, cst.Name):
            return self._name(file, node, keys)
        if isinstance(node, cst.Dict):
            return self._dict(file, node, keys)
        if keys and isinstance(node, cst.DictComp) and (copied := composed.copied(node)) is not None:
            return self.source(file, copied, keys)
        if isinstance(node, cst.IfExp):
            holds = self._holds(file, node.test)
            if holds is not None:
                return self.source(file, node.body if holds else node.orelse, keys)
            return pick([self.source(file, node.body, keys), self.source(file, node.orelse, keys)], file.location(node), self.expected)
        if isinstance(node, cst.BinaryOperation) and not keys:
            return self._computed(file, node)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):  # one dictionary over the other
            return self.source(file, node.right, keys) or self.source(file, node.left, keys)
        if isinstance(node, cst.BooleanOperation):
            return self._joined(file, node, keys)
        if not keys and (asked := environment(file, node)) is not None:
            return self._variable(file, node, *asked)
        place = lookups.place_of(self.project, node)
        if place is not None:
            return self._key(file, node, place[0], (*place[1], *keys))
        if keys and isinstance(node, cst.Subscript):
            return self.source(file, node.value, (ANY, *keys))
        if isinstance(node, cst.Call):
            return self._call(file, node, keys)
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")

    def _literal(self, file: PythonFile, node: cst.BaseExpression) -> Source:
        start, end = file.span(node)
        here = file.location(node)
        found = Source(
            literal(node), f"the value at {here}", here, lambda value: (Splice(file.path, start, end, spelled_value(value)),), offset=start
        )
        up = file.parent(node)
        if isinstance(up, cst.Assign) and len(up.targets) > 1:
            found = found.also([Use(here, "other", short(file.text(up)))])
        return found.also(self.other_callers(file, node))

    def _variable(self, file: PythonFile, node: cst.BaseExpression, name: str, default: cst.BaseExpression | None) -> Source | None:
        """An environment variable: where it is set, else the default that the program falls back on."""
        given = shell.variable(self.project, name)
        if len(given) > 1 or (not given and default is None):
            raise refuse(f"{file.location(node)}: {name} is set {'at several places' if given else 'nowhere'}")
        if given:
            return Source(given[0].current, given[0].where, given[0].location, given[0].write)
        assert default is not None
        text = string_value(default)
        if text is None:
            return self.source(file, default)
        here = file.location(default)
        return Source(value_of(text), f"the default of {name} at {here}", here, shell.writer(file, default), offset=file.span(default)[0])

    def other_callers(self, file: PythonFile, node: cst.CSTNode) -> list[Use]:
        """A value inside a function that is called from several places serves them all."""
        function = file.function_around(node)
        if function is None:
            return []
        return [uses.caller_use(*site) for site in callers.sites(self.project, file, function)[1:]]

    def _computed(self, file: PythonFile, node: cst.BinaryOperation) -> Source:
        left, right = self.source(file, node.left), self.source(file, node.right)
        apply = ARITHMETIC.get(type(node.operator))
        if left is None or right is None or apply is None or not all(isinstance(side.value, (int, float)) for side in (left, right)):
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")
        value = UNKNOWN if isinstance(node.operator, cst.FloorDivide) and right.value == 0 else apply(left.value, right.value)
        return Source(value, f"`{short(file.text(node))}`", file.location(node), None, chosen=left.chosen or right.chosen)

    def _joined(self, file: PythonFile, node: cst.BooleanOperation, keys: tuple[str, ...]) -> Source | None:
        """`setting and workers > 0`: the one side that is no condition which holds anyway."""
        if isinstance(node.operator, cst.Or):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` may be one or the other")
        open_sides = [side for side in conjuncts(node) if self._holds(file, side) is not True]
        if keys or len(open_sides) != 1:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")
        return self.source(file, open_sides[0])

    def _holds(self, file: PythonFile, test: cst.BaseExpression) -> bool | None:
        """Whether a condition about one typed value holds: `workers > 0`, `workers`, `not debug`; None where that is not known."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self._holds(file, test.expression)
            return None if inner is None else not inner
        compared = test.comparisons[0] if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
        apply = COMPARED.get(type(compared.operator)) if compared is not None else None
        bound = literal(compared.comparator) if compared is not None else None
        if isinstance(test, cst.Comparison) and (apply is None or bound is UNKNOWN):
            return None
        try:
            found = self.unseen().source(file, test.left if isinstance(test, cst.Comparison) else test)
            if found is None or found.value is UNKNOWN or found.write is None:
                return None
            return bool(found.value if apply is None else apply(found.value, bound))
        except (UsageError, TypeError):
            return None

    # Names --------------------------------------------------------------------------------------------------------------------

    def _name(self, file: PythonFile, node: cst.Name, keys: tuple[str, ...]) -> Source | None:
        scope = file.scope(node)
        assignments = list(scope[node.value]) if scope is not None else []
        assignments = [each for each in assignments if not _made_of(file, each, node)]
        if not assignments:
            return self._anywhere(file, node, keys)
        if not keys and scope is not None and assignments[0].scope is file.scope(file.module):
            set_there = self._names.executed(file, node.value)
            if set_there is not None:
                return set_there.also(uses.of_constant(node, self.project))
        found = [self._assignment(file, node, assignment, keys) for assignment in sorted(assignments, key=lambda each: order(file, each))]
        return pick(found, file.location(node), self.expected)

    def _assignment(self, file: PythonFile, node: cst.Name, assignment, keys: tuple[str, ...]) -> Source | None:
        if isinstance(assignment, metadata.ImportAssignment):
            return self._imported(file, node, keys)
        if not isinstance(assignment, metadata.Assignment):
            return self._anywhere(file, node, keys)
        target = assignment.node
        if isinstance(file.parent(target), cst.Param):
            target = file.parent(target)
        if isinstance(target, cst.Param):
            found = self._parameter(file, node, target, keys)
        else:
            value = assigned(file, target)
            if value is None:
                return self._anywhere(file, node, keys)
            found = self._changed_dict(file, assignment, value, keys) or self.source(file, value, keys)
        if found is None or keys:
            return found
        constant = assignment.scope is file.scope(file.module)
        others = uses.of_constant(node, self.project) if constant else uses.of_local(file, node, assignment.references)
        return found.also(use for use in others if use.location != file.location(target))

    def _imported(self, file: PythonFile, node: cst.Name, keys: tuple[str, ...]) -> Source | None:
        full = file.import_of(node) or ""
        module, _, name = full.rpartition(".")
        for where, word, rest in ((module, name, keys), (full, keys[0] if keys else "", keys[1:])):
            constant = self._constant(where, word) if word else None
            if constant is not None:
                other, target, value = constant
                found = self._names.from_outside(other, target.value) or self.source(other, value, rest)
                return (
                    None
                    if found is None
                    else found.also(uses.of_constant(target, self.project) if rest is not keys else uses.of_constant(node, self.project))
                )
        return self._anywhere(file, node, keys)

    def _constant(self, module: str, name: str) -> tuple[PythonFile, cst.Name, cst.BaseExpression] | None:
        """The variable `name` of a module of the project, and what is assigned to it first."""
        for other in self.project.parsed(name):
            if not is_module(other.path, module):
                continue
            for up in other.module.body:
                for assign in descendants(up, (cst.Assign, cst.AnnAssign)) if isinstance(up, cst.SimpleStatementLine) else ():
                    targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
                    for target in targets:
                        if isinstance(target, cst.Name) and target.value == name and assign.value is not None:
                            return other, target, assign.value
        return None

    def _changed_dict(self, file: PythonFile, assignment, value: cst.BaseExpression, keys: tuple[str, ...]) -> Source | None:
        """A dict that is changed after its literal: `d["key"] = value` counts, `d.update(…)` with unknown content is refused."""
        if not keys:
            return None
        found, perhaps = [], False
        for access in assignment.references:
            up = file.parent(access.node)
            place = lookups.key_of(up) if isinstance(up, cst.Subscript) else None
            if place is not None and place[1] == keys[0] and isinstance(file.parent(up), cst.AssignTarget) and len(keys) == 1:
                found.append(self.source(file, file.parent(file.parent(up)).value))
                perhaps = perhaps or self._conditional(file, up, value)
            if isinstance(up, cst.Attribute) and up.attr.value in ("update", "setdefault") and isinstance(file.parent(up), cst.Call):
                call = file.parent(up)
                if keyword(call, keys[0]) is not None or keys[0] in file.text(call) or any(arg.keyword is None for arg in call.args):
                    raise refuse(f"{file.location(up)}: `{short(file.text(call))}` may set {keys[0]!r} again")
        if perhaps:
            return pick([self.source(file, value, keys), *found], file.location(assignment.node), self.expected)
        if len(found) > 1:
            raise refuse(f"{file.location(assignment.node)}: {keys[0]!r} is set more than once")
        return found[0] if found else None

    @staticmethod
    def _conditional(file: PythonFile, node: cst.CSTNode, value: cst.BaseExpression) -> bool:
        """Whether `node` runs under a condition that does not also hold for `value`."""
        branches = (cst.If, cst.Else, cst.Try, cst.For, cst.While, cst.Match)
        return any(isinstance(up, branches) and not file.inside(value, up) for up in file.ancestors(node))

    def _parameter(self, file: PythonFile, node: cst.Name, param: cst.Param, keys: tuple[str, ...]) -> Source | None:
        function = next(up for up in file.ancestors(param) if isinstance(up, (cst.FunctionDef, cst.Lambda)))
        if isinstance(function, cst.Lambda):
            raise refuse(f"{file.location(node)}: `{node.value}` is a parameter of a lambda")
        own = self._own_fields(file, function, param, keys)
        if own is not UNKNOWN:
            return own
        sites = callers.sites(self.project, file, function)
        sites = [site for site in sites if any(site[1] is each for each in self._path)] or sites  # the call that was followed in here
        index = index_of(file, function, param)
        found: list[Source | None] = []
        missing = []
        for where, call in sites:
            if param.star == "**":
                found.append(self.argument(where, call, keys[0], None, keys[1:]) if keys else None)
            elif (given := passed(where, call, file, function, param)) is not None:
                found.append(self._given(where, call, param.name.value, given, keys))
            elif not has_splat(call, "**"):
                missing.append((where, call))
            else:
                found.append(self.argument(where, call, param.name.value, index, keys))
        if param.star == "**" and keys and not any(found) and (default := composed.set_by_default(function, param, keys[0])) is not None:
            return self.source(file, default, keys[1:])
        for where, call in callers.partials(self.project, file, function):
            if argument_node(where, call, param.name.value, None if index is None else index + 1) is not None:
                found.append(self.argument(where, call, param.name.value, None if index is None else index + 1, keys))
        unseen = not (sites or found)
        if unseen and not keys:
            found += self._names.by_framework(function, param.name.value)
        if missing or unseen:
            default = self._default(file, function, param, keys, not_passed=missing)
            if default is None and not found:
                return self._anywhere(file, node, keys)
            found.append(default)
        picked = pick(found, file.location(node), self.expected)
        if picked is not None and not picked.chosen:
            picked = picked.also(uses.caller_use(*site) for site in sites[1:])
        return picked

    def _default(
        self, file: PythonFile, function: cst.FunctionDef, param: cst.Param, keys: tuple[str, ...], not_passed: list
    ) -> Source | None:
        declared = [] if keys or not function.decorators else options.declared(self.project, param.name.value)
        declared = [
            option for option in declared if any(file.inside(option.call, each) for each in function.decorators if option.file is file)
        ]
        if declared:
            return self._names.option(declared[0], param.name.value)
        typed = None if keys else self._names.parameter(file, function, param.name.value)
        if typed is not None:
            return typed
        if param.default is None:
            return None
        found = self.source(file, param.default, keys)
        if found is None:
            return None
        outer = [use for use in found.uses if use.kind != "loader"]
        return replace(found, uses=tuple(outer) + tuple(uses.caller_use(*site) for site in not_passed[1:]))

    def _own_fields(self, file: PythonFile, function: cst.FunctionDef, param: cst.Param, keys: tuple[str, ...]) -> Any:
        """`self.key` in a method: what the class assigns to it, None where that has no such key, `UNKNOWN` where it assigns nothing."""
        owner = file.class_of(function)
        if owner is None or not keys or not function.params.params or function.params.params[0] is not param:
            return UNKNOWN
        if keys[0] == "hparams" and len(keys) > 1:
            saved = composed.saved_hyperparameters(file, owner, keys[1])
            if isinstance(saved, cst.Param):
                return self._parameter(file, saved.name, saved, keys[2:])
            if saved is not None:
                return self.source(file, saved, keys[1:])
        stored = given_to(owner, f"{param.name.value}.{keys[0]}")
        if not stored:
            found = self._names.fields(keys[0], only=owner.name.value) if len(keys) == 1 else self._anywhere(file, param.name, keys)
            return UNKNOWN if found is None else found
        return pick([self.source(file, value, keys[1:]) for value in stored], file.location(owner), self.expected)

    # Keys ---------------------------------------------------------------------------------------------------------------------

    def _key(self, file: PythonFile, node: cst.BaseExpression, base: cst.BaseExpression, keys: tuple[str, ...]) -> Source | None:
        found = self.source(file, base, keys)
        otherwise = fallback(node)
        if found is None and otherwise is not None and not keys[1:]:
            return self.source(file, otherwise)
        if found is None:
            return None
        own = dotted(base) == "self"
        others = uses.of_key(file, node, keys, self.project, self._path)
        if own:
            return found.also(use for use in others if use.text.startswith("self.") and use.location.file == file.path)
        return found.also(use for use in others if use.text != f"self.{keys[-1]}")

    def _dict(self, file: PythonFile, node: cst.Dict, keys: tuple[str, ...]) -> Source | None:
        if not keys:
            raise refuse(f"{file.location(node)}: is a dictionary, not one value")
        if keys[0] == ANY:
            found = [self.source(file, element.value, keys[1:]) for element in node.elements if isinstance(element, cst.DictElement)]
            return pick([source for source in found if source is not None], file.location(node), self.expected)
        for element in reversed(node.elements):
            if isinstance(element, cst.StarredDictElement):
                inner = self.source(file, element.value, keys)
                if inner is not None:
                    return inner
            elif string_value(element.key) == keys[0]:
                return self.source(file, element.value, keys[1:])
        return None

    def _call(self, file: PythonFile, node: cst.Call, keys: tuple[str, ...]) -> Source | None:
        full = file.full_name(node.func) or ""
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else full.split(".")[-1]
        if not keys and full in ("int", "bool", "float") and len(node.args) == 1:
            return self.source(file, node.args[0].value)
        if not keys and full == "min" and (bounded := composed.below_cores(file, node)) is not None:
            return self.source(file, bounded)
        if keys and name in PARSES:
            return self._names.parsed(file, node, keys)
        if keys and (written := text_configs.source(file, node, keys)) is not None:
            return written
        if keys and name in LOADS and full.split(".")[0] not in NOT_CONFIG:
            return self._names.configured(keys, file.location(node))
        if keys and name == "copy" and not node.args and isinstance(node.func, cst.Attribute):
            return self.source(file, node.func.value, keys)
        if keys and (name == "dict" or name in WRAPPERS) and not any(arg.star == "*" for arg in node.args):
            given = keyword(node, keys[0])
            if given is not None:
                return self.source(file, given.value, keys[1:])
            inner = [arg.value for arg in node.args if arg.keyword is None]
            return pick([self.source(file, value, keys) for value in inner], file.location(node), self.expected) if inner else None
        if keys:
            return self._made(file, node, keys)
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")

    def _made(self, file: PythonFile, node: cst.Call, keys: tuple[str, ...]) -> Source | None:
        """`keys` of what a project's class or function makes: the argument passed, the field's default, or what it returns."""
        name = composed.own_class(file, node) or (dotted(node.func) or "").split(".")[-1]
        for other in self.project.parsed(name):
            for found in other.nodes:
                if isinstance(found, cst.ClassDef) and found.name.value == name:
                    passed = self.argument(file, node, keys[0], None, keys[1:])
                    if passed is None and composed.takes_any_key(other, found):
                        inner = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
                        passed = pick([self.source(file, value, keys) for value in inner], file.location(node), self.expected)
                    return passed or self._anywhere(file, node, keys, only=name)
                if (
                    isinstance(found, cst.FunctionDef)
                    and found.name.value == name
                    and callers.means(self.project, file, node, other, found)
                ):
                    returned = [each.value for each in descendants(found, cst.Return) if each.value is not None]
                    if returned:
                        return pick([self.source(other, value, keys) for value in returned], other.location(found), self.expected)
        handed = isinstance(node.func, cst.Name) and parameter(file.function_around(node), node.func.value) is not None
        spread = self.argument(file, node, keys[0], None, keys[1:]) if handed and has_splat(node, "**") else None
        return spread or self._anywhere(file, node, keys)  # a class that is handed over, made of what a file says: `cls(**section)`

    def _anywhere(self, file: PythonFile, node: cst.CSTNode, keys: tuple[str, ...], only: str | None = None) -> Source | None:
        if not keys:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")
        if only is not None:
            return self._names.fields(keys[0], only=only) if len(keys) == 1 else self._within(only, keys)
        return self._names.anything(keys, file.location(node), config=True)

    def _within(self, owner: str, keys: tuple[str, ...]) -> Source | None:
        """`keys` of what the class `owner` makes by default: `keys[1]` of its field `keys[0]`, and so on."""
        classes = [(file, node) for file, node in self.project.each((owner,), lambda _, each: isinstance(each, cst.ClassDef))]
        named = [(file, node) for file, node in classes if node.name.value == owner]  # type: ignore[attr-defined]
        made = [(file, *each) for file, node in named for each in composed.made_by_default(node, keys[0])]  # type: ignore[arg-type]
        if len(named) != 1 or len(made) != 1:
            return None
        file, value, factory = made[0]
        return self._anywhere(file, value, keys[1:], only=factory) if factory else self.source(file, value, keys[1:])

    def field(self, name: str, owner: str) -> Source | None:
        """The default of the field or class constant `name` of the class `owner`, or what the command says of it."""
        return self._names.fields(name, only=owner)

    # Arguments ----------------------------------------------------------------------------------------------------------------

    def _given(self, file: PythonFile, call: cst.Call, name: str, node: cst.BaseExpression, keys: tuple[str, ...]) -> Source | None:
        found = self.source(file, node, keys)
        if found is None and not keys:
            raise refuse(f"{file.location(call)}: the source of {name} was not found")
        return found

    def argument(self, file: PythonFile, call: cst.Call, name: str, index: int | None, keys: tuple[str, ...] = ()) -> Source | None:
        """The source of the argument `name` of `call`; None when the call does not pass it. Raises `UsageError` when unclear."""
        if hf_parser.parses(call):
            return hf_parser.argument(self, file, call, name)
        node = argument_node(file, call, name, index)
        if node is not None:
            return self._given(file, call, name, node, keys)
        spreads = [(arg.value, self.source(file, arg.value, (name, *keys))) for arg in call.args if arg.star == "**"]
        found_in = [found.also(uses.of_spread(file, node, name, self.project)) for node, found in spreads if found is not None]
        return pick(found_in, file.location(call), self.expected) if found_in else None

    def configured(self, file: PythonFile, call: cst.Call, name: str) -> Source | None:
        """The key `name` of the program's configuration files, which `call` reads."""
        return self._names.configured((name,), file.location(call))

    def typed(self, file: PythonFile, call: cst.Call, name: str) -> Source | None:
        """What the command gives to the option `name`, which `call` reads; None where it does not."""
        return self._names.typed(name, file.location(call))


def known(project: Project, file: PythonFile, node: cst.BaseExpression, expected: Any = UNKNOWN) -> Source | None:
    """The source of `node`; None where it has none, or nobody can say it."""
    try:
        return Resolver(project, expected).source(file, node)
    except UsageError:
        return None


def _made_of(file: PythonFile, assignment: Any, node: cst.Name) -> bool:
    """Whether `assignment` makes a name of itself, by `node`, as in `config = dict(config)`: `node` is what it was before."""
    value = assigned(file, assignment.node) if isinstance(assignment, metadata.Assignment) else None
    return value is not None and file.inside(node, value)
