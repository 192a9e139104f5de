"""What is found by its name alone: options, fields of classes, configuration keys, and what the command gives to them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Protocol

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers, writes
from trainflash.knobs.reading.expressions import UNKNOWN, class_values, given_to, refuse, same
from trainflash.knobs.reading.origins import Source, pick
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword
from trainflash.knobs.reading.uses import Use
from trainflash.knobs.splices import Splice
from trainflash.knobs.surfaces import command, configs, options, shell
from trainflash.schema import Location

REFERS = re.compile(r"\$\{|%\(\w+\)s")  # a value that takes part of its text from another key


class Follower(Protocol):
    """Follows expressions to their sources: what `sources.Resolver` does, on which this file does not depend."""

    project: Project
    expected: Any  # what the run saw

    def source(self, file: PythonFile, node: cst.BaseExpression, keys: tuple[str, ...] = ()) -> Source | None: ...

    def unseen(self) -> Follower: ...


class Names:
    """Looks names up in the program that `follow` reads; `follow` takes the defaults and assigned values found there further."""

    def __init__(self, follow: Follower) -> None:
        self._follow = follow
        self._project = follow.project

    def anything(self, keys: tuple[str, ...], where: Location, *, config: bool) -> Source | None:
        """Options of that name, with `config` fields of classes and configuration keys too. Raises `UsageError` when there are none."""
        found: list[Source | None] = [
            self.option(option, keys[-1]) for option in options.declared(self._project, keys[-1]) if len(keys) == 1
        ]
        if config:
            fields = self.fields(keys[-1])
            found += [fields] if fields is not None else []
            found += self._leaves(keys)
        if not found and config and len(keys) == 1:
            found += self._passed(keys[0])
        if not found and config and len(keys) == 2:
            found += self._held(keys[1])
        if not found:
            raise refuse(f"{where}: no option, field or configuration key {'.'.join(keys)!r} was found in the program")
        return self._unwritten(pick(found, where, self._follow.expected), keys)

    def _held(self, name: str) -> list[Source | None]:
        """The one option of that name, for `self.args.num_workers` of an object that holds them; believed where the run saw its value."""
        declared = options.declared(self._project, name) if self._follow.expected is not UNKNOWN else []
        found = [self.option(option, name) for option in declared]
        return list(found) if len(found) == 1 and same(found[0].value, self._follow.expected) else []

    def _passed(self, name: str) -> list[Source | None]:
        """What the program passes by the keyword `name` to a class of its own; believed where one such value is what the run saw."""
        if self._follow.expected is UNKNOWN:
            return []
        classes = {node.name.value for _, node in self._project.each(("class",), lambda file, node: isinstance(node, cst.ClassDef))}  # type: ignore[attr-defined]
        found = [
            self._follow.source(file, given.value)
            for file in self._project.parsed(name)
            for call in file.calls
            if (given := keyword(call, name)) is not None and (dotted(call.func) or "").split(".")[-1] in classes
        ]
        fitting = [source for source in found if source is not None and same(source.value, self._follow.expected)]
        return list(fitting) if len(fitting) == 1 else []

    def parsed(self, file: PythonFile, call: cst.Call, keys: tuple[str, ...]) -> Source | None:
        """What a parser's call gives for `keys`. Raises `UsageError` where it reads other words than the command's."""
        words = writes.parsed_words(file, call)
        if words:
            raise refuse(f"{file.location(call)}: the options are read from `{words}`, not from the command")
        return self.anything(keys, file.location(call), config=False)

    def _only_declared(self, key: str) -> None:
        """Raises `UsageError` where the program sets `key` again by a call."""
        again = writes.by_name(self._project, key)
        if again is not None:
            file, call = again
            raise refuse(f"{file.location(call)}: `{file.text(call)}` may set {key} again, so the typed value may not count")

    def option(self, option: options.Option, name: str) -> Source:
        """What an option is set to: by the command, else by its default."""
        here = option.file.location(option.call)
        if self._project.given(option.spellings) is None:
            if not option.spellings and self._project.entry_word != len(self._project.command.argv) - 1:
                raise refuse(f"{here}: {name} is an argument by its place, which the command may give", "change it in the command")
            for file, spread in options.spread_defaults(self._project):
                wins = self._follow.source(file, spread, (name,))
                if wins is not None:
                    return wins if wins.write is None else replace(wins, write=options.chosen(option, wins.write))
        if option.implied is not None and option.default is None:
            return self._switch(option, name, here)
        if self._project.given(option.spellings) is not None:
            found = self._typed(option.spellings, option.flag or name, here)
            return replace(found, write=options.chosen(option, found.write))
        shown = f"the default of {option.flag or name} at {here}"
        if option.default is None:
            return Source(None, shown, here, None)
        found = self._follow.source(option.file, option.default)
        if found is None:
            raise refuse(f"{here}: the default of {option.flag} cannot be followed")
        inner = [use for use in found.uses if use.kind != "loader"]
        write = found.write if found.write is None else options.chosen(option, found.write)
        return replace(found, shown=shown, uses=tuple(inner), write=write)

    def _switch(self, option: options.Option, name: str, here: Location) -> Source:
        given = self._project.given(option.spellings)
        if given is not None and given not in self._project.command.argv:
            raise refuse(f"{given} is set in the command itself", f"change {option.flag} in the command's script")
        value, write = command.switch(self._project, option.spellings, option.implied)
        return Source(value, f"{option.flag or name} in the command, declared at {here}", here, write)

    def _typed(self, spellings: tuple[str, ...], name: str, here: Location) -> Source:
        """The value that the command gives to an option or key declared at `here`: in its scripts, or in its own words."""
        written = shell.option(self._project, spellings)
        if written is not None:
            return Source(written.value, f"{name} in {written.location}", written.location, written.write, offset=written.start)
        word = command.option(self._project, spellings)
        if word is not None:
            return Source(word.value, f"{name} in the command, declared at {here}", here, word.write, offset=word.at)
        raise refuse(f"{self._project.given(spellings)} is set in the command itself", f"change {name} in the command, not in the source")

    def typed(self, name: str, here: Location) -> Source | None:
        """What the command gives to an option of that name, which is declared at `here`; None: nothing."""
        return self._typed(_flags(name), _flags(name)[0], here) if self._project.given(_flags(name)) is not None else None

    def fields(self, name: str, only: str | None = None) -> Source | None:
        """The default of the field or class constant `name`: of class `only`, or of any class that is no network or data set."""
        found: list[Source | None] = []
        members = []
        for file in self._project.parsed(name):
            for owner in file.each(cst.ClassDef):
                if (only is not None and owner.name.value != only) or not isinstance(owner.body, cst.IndentedBlock):
                    continue
                values = class_values(owner.body, name)
                if values and _is_enumeration(file, owner):
                    members.append(f"{file.location(values[0])}: {name} is a member of the enumeration {owner.name.value}")
                    continue
                if values and given_to(owner, f"self.{name}"):
                    raise refuse(f"{file.location(values[0])}: {owner.name.value} assigns {name} again, so the typed value may not count")
                for value in values:
                    call = value if isinstance(value, cst.Call) else None
                    default = keyword(call, "default") if call is not None and (dotted(call.func) or "").endswith("field") else None
                    found.append(self._follow.source(file, default.value if default is not None else value))
        if members and not found:
            raise refuse(members[0])
        if found:
            self._only_declared(name)
        negated = self._project.given(tuple(f"--no{dash}{name.replace('_', dash)}" for dash in "-_")) if found else None
        if negated is not None:
            raise refuse(f"{negated} is set in the command itself", f"change {name} in the command, not in the source")
        spellings = (*_flags(name), name, *self._nested(name))
        if found and self._project.given(spellings) is not None:
            known = [source for source in found if source is not None]
            return self._typed(spellings, name, known[0].location) if known else None
        return pick(found, Location(self._project.entry or ".", 1), self._follow.expected) if found else None

    def _nested(self, name: str) -> tuple[str, ...]:
        """Options of the command that mean a field of a field: `--data.num-workers`."""
        flags = [word.partition("=")[0] for word in self._project.arguments if word.startswith("--") and "." in word]
        return tuple(flag for flag in flags if flag.split(".")[-1].replace("-", "_") == name)

    def parameter(self, file: PythonFile, function: cst.FunctionDef, name: str) -> Source | None:
        """What the command gives to a parameter of a function that fire, typer or the like makes its command line of; None: nothing."""
        spellings = _flags(name)
        if self._project.given(spellings) is None or not callers.is_command(self._project, file, function):
            return None
        return self._typed(spellings, name, file.location(function))

    def by_framework(self, function: cst.FunctionDef, name: str) -> list[Source]:
        """What a framework that makes the object itself, as LightningCLI and hydra do, may give to a parameter of its `__init__`.

        That is a field of the command (`--data.num_workers=0`) or a configuration key of that name; for another function the key
        beside the `_target_` that names it.
        """
        if function.name.value != "__init__":
            return self._beside_target(function.name.value, name)
        nested = self._nested(name)
        if nested:
            return [self._typed(nested, name, Location(self._project.entry or ".", 1))]
        return self._leaves((name,))

    def _beside_target(self, function: str, name: str) -> list[Source]:
        """Configuration keys `name` of blocks whose `_target_` is a function of that name."""
        leaves = [leaf for path in self._project.configs for leaf in self._read(path)]
        targets = [leaf for leaf in leaves if leaf.path[-1] == "_target_" and str(leaf.value).rpartition(".")[2] == function]
        blocks = {(leaf.file, leaf.path[:-1]) for leaf in targets}
        found = [leaf for leaf in leaves if leaf.path[-1] == name and (leaf.file, leaf.path[:-1]) in blocks]
        for leaf in found:
            parts = (*leaf.file.split("/")[:-1], *leaf.path)
            spellings = tuple(".".join(parts[at:]) for at in range(len(parts) - 1))
            if self._project.given(spellings) is not None:
                return [self._typed(spellings, ".".join(leaf.path), self._leaf(leaf).location)]
        return [self._leaf(leaf) for leaf in found]

    def executed(self, file: PythonFile, name: str) -> Source | None:
        """What sets a variable of a module that executes a file for its settings, as `exec(open("configurator.py").read())` does.

        That is an option `--name=value` of the command, or a Python file that the command names; None where it is neither.
        """
        texts = [file.text(call) for call in file.calls if dotted(call.func) == "exec"]
        if file.path != self._project.entry or not any("open(" in text or "read_text" in text for text in texts):
            return None
        spellings = (f"--{name}",)
        if self._project.given(spellings) is not None:
            return self._typed(spellings, name, Location(file.path, 1))
        paths = [self._project.from_cwd(word) for word in self._project.arguments if word.endswith(".py")]
        for path in paths:
            if path is not None and path != file.path:
                other = self._project.python(path)
                for value in class_values(other.module, name):
                    return self._follow.source(other, value)
        return None

    def from_outside(self, file: PythonFile, name: str) -> Source | None:
        """What another file assigns to a variable of the module `file`; None: none does. Raises `UsageError` where it may or may not."""
        there = writes.to_module(self._project, file.path, name)
        if not there:
            return None
        where, value = there[0]
        tests = [where.text(up.test) for up in where.ancestors(value) if isinstance(up, (cst.If, cst.While))]
        if len(there) > 1 or any("__name__" not in test for test in tests):
            raise refuse(f"{where.location(value)}: {name} of {file.path} may be assigned again here")
        return self._follow.source(where, value)

    def configured(self, keys: tuple[str, ...], where: Location) -> Source | None:
        """The configuration key `keys`; None when no file has it."""
        found = self._leaves(keys)
        if not found:
            return None
        return self._unwritten(pick(list(found), where, self._follow.expected), keys)

    def _leaves(self, keys: tuple[str, ...]) -> list[Source]:
        """Configuration keys that end in `keys`, the best fitting ones only: whole path, end of a path, path below a file's folder."""
        leaves = [leaf for path in self._project.configs for leaf in self._read(path)]
        n = len(keys)
        groups = (
            [leaf for leaf in leaves if leaf.path == keys],
            [leaf for leaf in leaves if leaf.path[-n:] == keys],
            [leaf for leaf in leaves if (*leaf.file.split("/")[:-1], *leaf.path)[-n:] == keys],
        )
        fitting = next((group for group in groups if group), [])
        spellings = (".".join(keys), f"--{'.'.join(keys)}")
        if fitting and self._project.given(spellings) is not None:
            return [self._typed(spellings, ".".join(keys), self._leaf(fitting[0]).location)]
        return [self._leaf(leaf) for leaf in fitting]

    def _read(self, path: str) -> tuple[configs.Leaf, ...]:
        try:
            return configs.leaves(path, self._project.read(path))
        except UsageError:
            return ()

    def _leaf(self, leaf: configs.Leaf) -> Source:
        raw = self._project.read(leaf.file)
        here = Location(leaf.file, raw.count(b"\n", 0, leaf.start) + 1)

        def write(value: Any) -> tuple[Splice, ...]:
            splice = leaf.splice(value)
            if not same(leaf.value, value) and not configs.only_changed(leaf.file, raw, leaf, splice):
                raise refuse(f"{here}: the key {'.'.join(leaf.path)} cannot be changed alone")
            return (splice,)

        shown = f"{'.'.join(leaf.path)} at {here}"
        if isinstance(leaf.value, str) and REFERS.search(leaf.value):
            return Source(UNKNOWN, f"{shown}, `{leaf.value}`", here, None)
        shared = [Use(here, "other", f"anchor of {'.'.join(leaf.path)}")] * max(0, leaf.shared - 1)
        shared += self._interpolated(leaf)
        return Source(leaf.value, shown, here, write, tuple(shared), offset=leaf.start)

    def _interpolated(self, leaf: configs.Leaf) -> list[Use]:
        """Other keys that take their value from this one: `save_every: ${eval_every}`, in INI files also `%(eval_every)s`."""
        name = re.escape(leaf.path[-1].encode())
        refers = re.compile(rb"\$\{(?:[\w.:]*[.:])?" + name + rb"[},]|%\(" + name + rb"\)s", re.IGNORECASE)
        found = []
        for path in self._project.configs:
            raw = self._project.read(path)
            lines = [raw.count(b"\n", 0, match.start()) + 1 for match in refers.finditer(raw)]
            found += [Use(Location(path, line), "other", f"refers to {leaf.path[-1]}") for line in lines]
        return found

    def _unwritten(self, found: Source | None, keys: tuple[str, ...]) -> Source | None:
        """`found`, unless the program assigns to the same key what the run may have had; an unset option whose default is None does not
        count."""
        self._only_declared(keys[-1])
        for file, value in writes.to_key(self._project, keys):
            try:
                other = self._follow.unseen().source(file, value)
            except UsageError:
                other = None
            told = other is not None and other.value is not UNKNOWN and not same(other.value, self._follow.expected)
            if told and found is not None and same(found.value, self._follow.expected):
                continue  # the run had what was typed, and not this
            if other is None or other.value is not None:
                raise refuse(f"{file.location(value)}: {keys[-1]} is assigned again here, so the typed value may not count")
        return found


def _flags(name: str) -> tuple[str, str]:
    """The options by which a command line sets a name."""
    return f"--{name}", f"--{name.replace('_', '-')}"


def _is_enumeration(file: PythonFile, owner: cst.ClassDef) -> bool:
    """Whether the class derives from one of `enum`'s."""
    return any((file.full_name(base.value) or "").split(".")[-1].endswith(("Enum", "Flag")) for base in owner.bases)
