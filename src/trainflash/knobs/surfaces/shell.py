"""Shell scripts of the command: options, overrides and environment variables that they write down."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from trainflash.knobs.kinds import Environment
from trainflash.knobs.project import Project, sets_option
from trainflash.knobs.reading import shell_lines
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice, Variable
from trainflash.knobs.surfaces import command
from trainflash.knobs.surfaces.words import TYPED, spelled, value_of, values_of
from trainflash.schema import Location

# A value that stands unless a variable is given from outside; one that another variable holds.
DEFAULT = re.compile(r'(?P<quote>"?)\$\{(?P<name>\w+):?[-=](?P<text>[\w.+-]+)\}(?P=quote)')
# How a program sets a variable of its own.
SETS = r"environ\s*\[\s*['\"]{name}['\"]\s*\]\s*=[^=]|(?:setdefault|putenv)\(\s*['\"]{name}['\"]|environ\.update\([^)]*{name}"
HELD = re.compile(r'(?P<quote>"?)\$(?P<brace>\{)?(?P<name>\w+)(?(brace)\})(?P=quote)')


@dataclass(frozen=True)
class Written:
    """A value in a script: its text and bytes."""

    file: str
    start: int
    end: int
    text: str
    line: int

    @property
    def value(self) -> Any:
        return value_of(self.text)

    @property
    def location(self) -> Location:
        return Location(self.file, self.line)

    def write(self, value: Any) -> tuple[Splice, ...]:
        """The edit that writes `value` there, in the spelling of the old one."""
        return (Splice(self.file, self.start, self.end, spelled(self.text, value)),)


def option(project: Project, options: tuple[str, ...]) -> Written | None:
    """The value of the only place in the command's scripts that sets one of `options`; None where it is set elsewhere or not plainly."""
    if any(sets_option(word, each, project.flags) for word in project.command.argv for each in options):
        return None
    found = []
    for path in project.scripts:
        for words in project.lines(path):
            places = values_of([word.text for word in words], options, project.flags)
            if places is None:
                return None
            for at, begin in places:
                found.append(_typed(project, path, words[at].text[begin:], words[at].start + begin, words[at].line))
    return found[0] if len(found) == 1 else None


def environment(edit: Environment, scene: Scene) -> tuple[Target, ...]:
    """Where the variable is given its value. Raises `UsageError` when that is unclear."""
    for rival in edit.rivals:
        outside = rival in os.environ or rival in scene.project.command.env
        where = "the environment" if outside else _spoken_of(scene.project, rival)
        if where:
            raise refuse(f"{where} speaks of {rival}, which decides the same")
    name, written = edit.variable, variable(scene.project, edit.variable)
    if not written and edit.unset is not None:
        where = _spoken_of(scene.project, name)
        if where:
            raise refuse(f"{where} speaks of {name}, and what it does with it is not told")
        shown = f"{name} in the environment, set nowhere"
        return (Target(Location(scene.project.entry or ".", 1), edit.unset, lambda value: (Variable(name, str(value)),), shown),)
    values = {str(target.current) for target in written}
    if len(written) != 1:
        what = "is set nowhere in the program or its scripts" if not written else f"is set at several places ({', '.join(sorted(values))})"
        raise refuse(f"no call of {name}: {name} {what}" if not written else f"{name} {what}", f"run the command with {name}=…")
    return (_in_its_case(written[0]) if edit.unset is not None else written[0],)


def _in_its_case(target: Target) -> Target:
    """`target`, whose words mean the same in any case."""
    was = str(target.current)
    cased = str.upper if was.isupper() else str
    return replace(target, current=was.lower(), write=lambda value: target.write(cased(str(value))))


def _spoken_of(project: Project, name: str) -> str:
    """The first file of the program, its scripts and configurations, or else the command, that has the name in it; empty: none."""
    files = (*project.program, *project.scripts, *project.configs)
    found = next((path for path in files if name.encode() in project.read(path)), "")
    return found or ("the command" if any(name in word for word in project.command.argv) else "")


def variable(project: Project, name: str) -> list[Target]:
    """Where a variable gets its value: in the command's words, in its scripts, or, if in none of them, before all that.

    Raises `UsageError` where it is computed, or the program sets it.
    """
    written = [_of_command(project, name)] if any(word.startswith(f"{name}=") for word in project.command.argv) else []
    for path in project.scripts:
        for value, start, line in _assigned(project, path, name):
            found = _typed(project, path, value, start, line)
            if found is None:
                raise refuse(f"{Location(path, line)}: `{name}={value}` is computed, nothing typed to change")
            written.append(Target(found.location, found.value, found.write, f"{name} at {found.location}"))
        if not written and re.search(rf"\$\{{{name}:?=|\b(?:unset|read)\b[^\n]*\b{name}\b".encode(), project.read(path)):
            raise refuse(f"{path} speaks of {name}, and what it does with it is not told")
    sets = re.compile(SETS.format(name=re.escape(name)).encode())
    for path in project.program:
        if sets.search(project.read(path)):
            raise refuse(f"{path} sets {name} itself", "change it there")
    if not written and (given := project.command.env.get(name, os.environ.get(name))) is not None:
        where = f"{name} in the environment"
        return [Target(Location(project.entry or ".", 1), value_of(given), lambda value: (Variable(name, spelled(given, value)),), where)]
    return written


def _of_command(project: Project, name: str) -> Target:
    word = command.variable(project, name)
    if word is None:
        raise refuse(f"{name} is set in the command itself", f"change {name} in the command")
    return Target(Location(project.entry or ".", 1), word.value, word.write, f"{name} in the command")


def _typed(project: Project, path: str, word: str, start: int, line: int) -> Written | None:
    """The typed text that decides what `word` at `start` means; None where it is computed, or said from outside.

    `24`, `"24"`; the 24 of `${N:-24}` where nothing sets N; that of `$N` where N is set once in the script and used nowhere else.
    """
    if typed := TYPED.fullmatch(word):
        return Written(path, start + typed.start("text"), start + typed.end("text"), typed["text"], line)
    named = DEFAULT.fullmatch(word) or HELD.fullmatch(word)
    if named is None or _from_outside(project, named["name"]):
        return None
    name = named["name"]
    given = _assigned(project, path, name)
    if named.re is DEFAULT:
        elsewhere = [found for found in given if found[1] != start]
        return None if elsewhere else Written(path, start + named.start("text"), start + named.end("text"), named["text"], line)
    every = (word.text for line in shell_lines.lines(project.read(path)) for word in line)
    uses = sum(len(re.findall(rf"\$\{{?{name}\b", text)) for text in every)
    return _typed(project, path, *given[0]) if len(given) == 1 and uses == 1 else None


def _from_outside(project: Project, name: str) -> bool:
    """Whether a variable has a value before the script begins."""
    return name in os.environ or name in project.command.env or any(word.startswith(f"{name}=") for word in project.command.argv)


def writer(file: PythonFile, node: cst.BaseExpression) -> Callable[[Any], tuple[Splice, ...]]:
    """Writes a value into a string literal."""
    start, end = file.span(node)
    text, quote = string_value(node) or "", file.text(node)[0]
    return lambda value: (Splice(file.path, start, end, f"{quote}{spelled(text, value)}{quote}"),)


def _assigned(project: Project, path: str, name: str) -> list[tuple[str, int, int]]:
    """What a script gives to a variable: the text of the value, the byte that it begins at, and its line."""
    words = [word for line in project.lines(path) for word in line if word.text.startswith(f"{name}=")]
    return [(word.text[len(name) + 1 :], word.start + len(name) + 1, word.line) for word in words]
