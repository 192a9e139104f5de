"""Where a value comes from: from an argument back to the literal, option default or configuration key that somebody typed.

The rule that keeps edits right: a source is believed only if it is the only one, or the only one whose value is what the run saw.
Everything else is refused with the reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst
from libcst import metadata

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import uses
from trainflash.knobs.reading.expressions import (
    UNKNOWN,
    argument_node,
    assigned,
    class_values,
    fallback,
    given_to,
    index_of,
    literal,
    order,
    refuse,
    same,
    short,
    spelled_value,
)  # fmt: skip
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, string_value
from trainflash.knobs.reading.uses import Use
from trainflash.knobs.splices import Edit, Splice
from trainflash.knobs.surfaces import command, configs, options, shell
from trainflash.schema import Location

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


@dataclass(frozen=True)
class Source:
    """A value and where it is written. `write` makes the edit; None: the value is computed, `shown` says how."""

    value: Any
    shown: str
    location: Location
    write: Callable[[Any], tuple[Edit, ...]] | None
    uses: tuple[Use, ...] = ()
    offset: int = 0  # of its text in the file, to tell two of one line apart
    chosen: bool = False  # one of several callers passes it, told apart by its value

    def also(self, more: Iterable[Use]) -> Source:
        """The same source with `more` readers."""
        return replace(self, uses=self.uses + tuple(more))


class Resolver:
    """Follows one value through the program. `expected` is what the run saw, `UNKNOWN` where it was not seen."""

    def __init__(self, project: Project, expected: Any = UNKNOWN) -> None:
        self.project = project
        self.expected = expected
        self._depth = 0

    def source(self, file: PythonFile, node: cst.BaseExpression, keys: tuple[str, ...] = ()) -> Source | None:
        """The source of `node`, or of what `keys` pick from it; None when it provably has no such key.

        Raises `UsageError` with the reason when the source is ambiguous, computed beyond following, or set by the command.
        """
        if self._depth >= DEEPEST:
            raise refuse(f"{file.location(node)}: the value goes through too many names to follow")
        self._depth += 1
        try:
            return self._source(file, node, keys)
        finally:
            self._depth -= 1

    def _source(self, file: PythonFile, node: cst.BaseExpression, keys: tuple[str, ...]) -> Source | None:
        if not keys and literal(node) is not UNKNOWN:
            return self._literal(file, node)
        if isinstance(node, cst.Name):
            return self._name(file, node, keys)
        if isinstance(node, cst.Dict):
            return self._dict(file, node, keys)
        if isinstance(node, cst.IfExp):
            return self.pick([self.source(file, node.body, keys), self.source(file, node.orelse, keys)], file.location(node))
        if isinstance(node, cst.BinaryOperation) and not keys:
            return self._computed(file, node)
        if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` may be one or the other")
        place = uses.key_of(node)
        if place is not None:
            return self._key(file, node, place[0], (place[1], *keys))
        if isinstance(node, cst.Call):
            return self._call(file, node, keys)
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")

    def _literal(self, file: PythonFile, node: cst.BaseExpression) -> Source:
        start, end = file.span(node)
        here = file.location(node)
        found = Source(
            literal(node), f"the value at {here}", here, lambda value: (Splice(file.path, start, end, spelled_value(value)),), offset=start
        )
        return found.also(self.other_callers(file, node))

    def other_callers(self, file: PythonFile, node: cst.CSTNode) -> list[Use]:
        """A value inside a function that is called from several places serves them all."""
        function = next((up for up in file.ancestors(node) if isinstance(up, cst.FunctionDef)), None)
        if function is None:
            return []
        return [uses.caller_use(*site) for site in uses.callers(self.project, file, function)[1:]]

    def _computed(self, file: PythonFile, node: cst.BinaryOperation) -> Source:
        left, right = self.source(file, node.left), self.source(file, node.right)
        apply = ARITHMETIC.get(type(node.operator))
        if left is None or right is None or apply is None or not all(isinstance(side.value, (int, float)) for side in (left, right)):
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")
        value = UNKNOWN if isinstance(node.operator, cst.FloorDivide) and right.value == 0 else apply(left.value, right.value)
        return Source(value, f"`{short(file.text(node))}`", file.location(node), None, chosen=left.chosen or right.chosen)

    def pick(self, found: list[Source | None], where: Location) -> Source | None:
        """The one source among `found`: all the same, or the only one with the expected value. Raises `UsageError` when unclear."""
        known = [source for source in found if source is not None]
        if not known:
            return None
        places = {(source.location, source.shown, source.offset): source for source in known}
        if len(places) == 1 and len(known) == len(found):
            return known[0].also(use for source in known[1:] for use in source.uses)
        fitting = [source for source in places.values() if same(source.value, self.expected)]
        if len(fitting) == 1 and all(source.value is not UNKNOWN for source in known):
            times = sum(1 for source in known if (source.location, source.offset) == (fitting[0].location, fitting[0].offset))
            return replace(fitting[0], chosen=times == 1)
        listed = ", ".join(f"{source.shown} ({source.value!r})" for source in list(places.values())[:4])
        raise refuse(f"{where}: the value may come from several places: {listed}")

    # Names --------------------------------------------------------------------------------------------------------------------

    def _name(self, file: PythonFile, node: cst.Name, keys: tuple[str, ...]) -> Source | None:
        scope = file.scope(node)
        assignments = list(scope[node.value]) if scope is not None else []
        if not assignments:
            return self._anywhere(file, node, keys)
        found = [self._assignment(file, node, assignment, keys) for assignment in sorted(assignments, key=lambda each: order(file, each))]
        return self.pick(found, file.location(node))

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
        full = file.imported.get(node.value, "")
        module, _, name = full.rpartition(".")
        for where, word, rest in ((module, name, keys), (full, keys[0] if keys else "", keys[1:])):
            constant = self._constant(where, word) if word else None
            if constant is not None:
                other, target, value = constant
                found = self.source(other, value, rest)
                return (
                    None
                    if found is None
                    else found.also(uses.of_constant(target, self.project) if rest is not keys else uses.of_constant(node, self.project))
                )
        return self._anywhere(file, node, keys)

    def _constant(self, module: str, name: str) -> tuple[PythonFile, cst.Name, cst.BaseExpression] | None:
        """The variable `name` of a module of the project, and what is assigned to it first."""
        for other in self.project.parsed(name):
            if not uses.is_module(other.path, module):
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
            place = uses.key_of(up) if isinstance(up, cst.Subscript) else None
            if place is not None and place[1] == keys[0] and isinstance(file.parent(up), cst.AssignTarget) and len(keys) == 1:
                found.append(self.source(file, file.parent(file.parent(up)).value))
                perhaps = perhaps or self._conditional(file, up, value)
            if isinstance(up, cst.Attribute) and up.attr.value in ("update", "setdefault") and isinstance(file.parent(up), cst.Call):
                call = file.parent(up)
                if keyword(call, keys[0]) is not None or keys[0] in file.text(call) or any(arg.keyword is None for arg in call.args):
                    raise refuse(f"{file.location(up)}: `{short(file.text(call))}` may set {keys[0]!r} again")
        if perhaps:
            return self.pick([self.source(file, value, keys), *found], file.location(assignment.node))
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
        sites = uses.callers(self.project, file, function)
        index = index_of(file, function, param)
        found: list[Source | None] = []
        missing = []
        for where, call in sites:
            if param.star == "**":
                found.append(self.argument(where, call, keys[0], None, keys[1:]) if keys else None)
            elif argument_node(where, call, param.name.value, index) is None and not has_splat(call, "**"):
                missing.append((where, call))
            else:
                found.append(self.argument(where, call, param.name.value, index, keys))
        if missing or not sites:
            default = self._default(file, function, param, keys, not_passed=missing)
            if default is None and not found:
                return self._anywhere(file, node, keys)
            found.append(default)
        picked = self.pick(found, file.location(node))
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
            return self._option(declared[0], param.name.value)
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
        stored = given_to(owner, f"{param.name.value}.{keys[0]}")
        if not stored:
            found = self._fields(keys[0], only=owner.name.value) if len(keys) == 1 else self._anywhere(file, param.name, keys)
            return UNKNOWN if found is None else found
        return self.pick([self.source(file, value, keys[1:]) for value in stored], file.location(owner))

    # Keys ---------------------------------------------------------------------------------------------------------------------

    def _key(self, file: PythonFile, node: cst.BaseExpression, base: cst.BaseExpression, keys: tuple[str, ...]) -> Source | None:
        found = self.source(file, base, keys)
        otherwise = fallback(node)
        if found is None and otherwise is not None and not keys[1:]:
            return self.source(file, otherwise)
        if found is None:
            return None
        own = dotted(base) == "self"
        others = uses.of_key(file, node, keys, self.project)
        if own:
            return found.also(use for use in others if use.text.startswith("self.") and use.location.file == file.path)
        return found.also(use for use in others if use.text != f"self.{keys[-1]}")

    def _dict(self, file: PythonFile, node: cst.Dict, keys: tuple[str, ...]) -> Source | None:
        if not keys:
            raise refuse(f"{file.location(node)}: is a dictionary, not one value")
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
        if keys and name in PARSES:
            return self._named(keys, file.location(node), config=False)
        if keys and name in LOADS and full.split(".")[0] not in NOT_CONFIG:
            return self._config(keys, file.location(node))
        if keys and (name == "dict" or name in WRAPPERS) and not any(arg.star == "*" for arg in node.args):
            given = keyword(node, keys[0])
            if given is not None:
                return self.source(file, given.value, keys[1:])
            inner = [arg.value for arg in node.args if arg.keyword is None]
            return self.pick([self.source(file, value, keys) for value in inner], file.location(node)) if inner else None
        if keys:
            return self._made(file, node, keys)
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")

    def _made(self, file: PythonFile, node: cst.Call, keys: tuple[str, ...]) -> Source | None:
        """`keys` of what a project's class or function makes: the argument passed, the field's default, or what it returns."""
        name = (dotted(node.func) or "").split(".")[-1]
        for other in self.project.parsed(name):
            for found in other.nodes:
                if isinstance(found, cst.ClassDef) and found.name.value == name:
                    passed = self.argument(file, node, keys[0], None, keys[1:])
                    return passed or self._anywhere(file, node, keys, only=name)
                if isinstance(found, cst.FunctionDef) and found.name.value == name and other.class_of(found) is None:
                    returned = [each.value for each in descendants(found, cst.Return) if each.value is not None]
                    if returned:
                        return self.pick([self.source(other, value, keys) for value in returned], other.location(found))
        return self._anywhere(file, node, keys)

    def _anywhere(self, file: PythonFile, node: cst.CSTNode, keys: tuple[str, ...], only: str | None = None) -> Source | None:
        if not keys:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is computed, nothing typed to change")
        if only is not None:
            return self._fields(keys[0], only=only) if len(keys) == 1 else None
        return self._named(keys, file.location(node), config=True)

    def _named(self, keys: tuple[str, ...], where: Location, *, config: bool) -> Source | None:
        """By name alone, where the object cannot be followed: options, fields of classes and configuration keys of that name."""
        found: list[Source | None] = [
            self._option(option, keys[-1]) for option in options.declared(self.project, keys[-1]) if len(keys) == 1
        ]
        if config:
            fields = self._fields(keys[-1])
            found += [fields] if fields is not None else []
            found += self._leaves(keys)
        if not found:
            raise refuse(f"{where}: no option, field or configuration key {'.'.join(keys)!r} was found in the program")
        return self._unwritten(self.pick(found, where), keys)

    def _option(self, option: options.Option, name: str) -> Source:
        here = option.file.location(option.call)
        if option.implied is not None and option.default is None:
            return self._switch(option, name, here)
        if self.project.given(option.spellings) is not None:
            found = self._typed(option.spellings, option.flag or name, here)
            return replace(found, write=options.chosen(option, found.write))
        shown = f"the default of {option.flag or name} at {here}"
        if option.default is None:
            return Source(None, shown, here, None)
        found = self.source(option.file, option.default)
        if found is None:
            raise refuse(f"{here}: the default of {option.flag} cannot be followed")
        inner = [use for use in found.uses if use.kind != "loader"]
        write = found.write if found.write is None else options.chosen(option, found.write)
        return replace(found, shown=shown, uses=tuple(inner), write=write)

    def _switch(self, option: options.Option, name: str, here: Location) -> Source:
        given = self.project.given(option.spellings)
        if given is not None and given not in self.project.command.argv:
            raise refuse(f"{given} is set in the command itself", f"change {option.flag} in the command's script")
        value, write = command.switch(self.project, option.spellings, option.implied)
        return Source(value, f"{option.flag or name} in the command, declared at {here}", here, write)

    def _typed(self, spellings: tuple[str, ...], name: str, here: Location) -> Source:
        """The value that the command gives to an option or key declared at `here`: in its scripts, or in its own words."""
        written = shell.option(self.project, spellings)
        if written is not None:
            return Source(written.value, f"{name} in {written.location}", written.location, written.write, offset=written.start)
        word = command.option(self.project, spellings)
        if word is not None:
            return Source(word.value, f"{name} in the command, declared at {here}", here, word.write, offset=word.at)
        raise refuse(f"{self.project.given(spellings)} is set in the command itself", f"change {name} in the command, not in the source")

    def _fields(self, name: str, only: str | None = None) -> Source | None:
        """The default of the field or class constant `name`: of class `only`, or of any class that is no network or data set."""
        found: list[Source | None] = []
        for file in self.project.parsed(name):
            for owner in (node for node in file.nodes if isinstance(node, cst.ClassDef)):
                if (only is not None and owner.name.value != only) or not isinstance(owner.body, cst.IndentedBlock):
                    continue
                for value in class_values(owner.body, name):
                    call = value if isinstance(value, cst.Call) else None
                    default = keyword(call, "default") if call is not None and (dotted(call.func) or "").endswith("field") else None
                    found.append(self.source(file, default.value if default is not None else value))
        spellings = (f"--{name}", f"--{name.replace('_', '-')}", name)
        if found and self.project.given(spellings) is not None:
            known = [source for source in found if source is not None]
            return self._typed(spellings, name, known[0].location) if known else None
        return self.pick(found, Location(self.project.entry or ".", 1)) if found else None

    def _config(self, keys: tuple[str, ...], where: Location) -> Source | None:
        found = self._leaves(keys)
        if not found:
            return None
        return self._unwritten(self.pick(list(found), where), keys)

    def _leaves(self, keys: tuple[str, ...]) -> list[Source]:
        """Configuration keys that end in `keys`, the best fitting ones only: whole path, end of a path, path below a file's folder."""
        leaves = [leaf for path in self.project.configs for leaf in self._read(path)]
        n = len(keys)
        groups = (
            [leaf for leaf in leaves if leaf.path == keys],
            [leaf for leaf in leaves if leaf.path[-n:] == keys],
            [leaf for leaf in leaves if (*leaf.file.split("/")[:-1], *leaf.path)[-n:] == keys],
        )
        fitting = next((group for group in groups if group), [])
        spellings = (".".join(keys), f"--{'.'.join(keys)}")
        if fitting and self.project.given(spellings) is not None:
            return [self._typed(spellings, ".".join(keys), self._leaf(fitting[0]).location)]
        return [self._leaf(leaf) for leaf in fitting]

    def _read(self, path: str) -> tuple[configs.Leaf, ...]:
        try:
            return configs.leaves(path, self.project.read(path))
        except UsageError:
            return ()

    def _leaf(self, leaf: configs.Leaf) -> Source:
        raw = self.project.read(leaf.file)
        here = Location(leaf.file, raw.count(b"\n", 0, leaf.start) + 1)

        def write(value: Any) -> tuple[Splice, ...]:
            splice = leaf.splice(value)
            if not same(leaf.value, value) and not configs.only_changed(leaf.file, raw, leaf, splice):
                raise refuse(f"{here}: the key {'.'.join(leaf.path)} cannot be changed alone")
            return (splice,)

        shared = [Use(here, "other", f"anchor of {'.'.join(leaf.path)}")] * max(0, leaf.shared - 1)
        return Source(leaf.value, f"{'.'.join(leaf.path)} at {here}", here, write, tuple(shared))

    def _unwritten(self, found: Source | None, keys: tuple[str, ...]) -> Source | None:
        """`found`, unless the program assigns to the same key what the run may have had; an unset option whose default is None does not
        count."""
        for file, value in uses.writes_to(self.project, keys):
            try:
                follower = Resolver(self.project)
                follower._depth = self._depth + 1
                other = follower.source(file, value)
            except UsageError:
                other = None
            told = other is not None and other.value is not UNKNOWN and not same(other.value, self.expected)
            if told and found is not None and same(found.value, self.expected):
                continue  # the run had what was typed, and not this
            if other is None or other.value is not None:
                raise refuse(f"{file.location(value)}: {keys[-1]} is assigned again here, so the typed value may not count")
        return found

    # Arguments ----------------------------------------------------------------------------------------------------------------

    def argument(self, file: PythonFile, call: cst.Call, name: str, index: int | None, keys: tuple[str, ...] = ()) -> Source | None:
        """The source of the argument `name` of `call`; None when the call does not pass it. Raises `UsageError` when unclear."""
        node = argument_node(file, call, name, index)
        if node is not None:
            found = self.source(file, node, keys)
            if found is None and not keys:
                raise refuse(f"{file.location(call)}: the source of {name} was not found")
            return found
        found_in = [found for arg in call.args if arg.star == "**" and (found := self.source(file, arg.value, (name, *keys))) is not None]
        return self.pick(found_in, file.location(call)) if found_in else None
