"""Shell scripts of the command: options, overrides and environment variables that they write down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.knobs.kinds import Environment
from trainflash.knobs.project import Project, sets_option
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

WORD = re.compile(r"(?:[^\s'\";|&<>()\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+")
PLAIN = re.compile(r"[\w.+-]*")  # a value that means what it says: no variable, no substitution, no quotes


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
        """The text as a number or switch where it is one."""
        lowered = {"true": True, "false": False}.get(self.text.lower())
        if lowered is not None:
            return lowered
        return int(self.text) if re.fullmatch(r"[+-]?\d+", self.text) else self.text

    @property
    def location(self) -> Location:
        return Location(self.file, self.line)

    def write(self, value: Any) -> tuple[Splice, ...]:
        """The edit that writes `value` there, in the spelling of the old one."""
        text = str(value)
        if isinstance(value, bool):
            text = text if self.text[:1].isupper() else text.lower()
        return (Splice(self.file, self.start, self.end, text),)


def option(project: Project, options: tuple[str, ...]) -> Written | None:
    """The value of the only place in the command's scripts that sets one of `options`; None where it is set elsewhere or not plainly."""
    if any(sets_option(word, each) for word in project.command.argv for each in options):
        return None
    found = []
    for path in project.scripts:
        words = list(_words(project, path))
        for number, (text, start, line) in enumerate(words):
            if not any(sets_option(text, each) for each in options):
                continue
            name, equals, value = text.partition("=")
            if equals:
                found.append(Written(path, start + len(name) + 1, start + len(text), value, line))
            elif number + 1 < len(words) and text.startswith("-") and not re.fullmatch(r"-\w\d+", text):
                after, begin, row = words[number + 1]
                found.append(Written(path, begin, begin + len(after), after, row))
            else:
                return None
    return found[0] if len(found) == 1 and found[0].text and PLAIN.fullmatch(found[0].text) else None


def environment(edit: Environment, scene: Scene) -> tuple[Target, ...]:
    """Where the variable is given its value: in a script of the command, or in `os.environ`. Raises `UsageError` when unclear."""
    name, project = edit.variable, scene.project
    if any(word.startswith(f"{name}=") for word in project.command.argv):
        raise refuse(f"{name} is set in the command itself", f"change {name} in the command")
    written: list[Target] = []
    for path in project.scripts:
        for text, start, line in _words(project, path):
            if text.startswith(f"{name}="):
                value = text[len(name) + 1 :]
                found = Written(path, start + len(name) + 1, start + len(text), value, line)
                if not PLAIN.fullmatch(value) or not value:
                    raise refuse(f"{found.location}: `{text}` is computed, nothing typed to change")
                written.append(Target(found.location, found.value, found.write, f"{name} at {found.location}"))
    for file, node in _in_python(scene, name):
        if literal(node) is None or string_value(node) is None:
            raise refuse(f"{file.location(node)}: `{file.text(node)}` is computed, nothing typed to change")
        written.append(_python_target(file, node, name))
    values = {str(target.current) for target in written}
    if len(written) != 1:
        what = "is set nowhere in the program or its scripts" if not written else f"is set at several places ({', '.join(sorted(values))})"
        raise refuse(f"no call of {name}: {name} {what}" if not written else f"{name} {what}", f"run the command with {name}=…")
    return (written[0],)


def _python_target(file: PythonFile, node: cst.BaseExpression, name: str) -> Target:
    start, end = file.span(node)
    text = string_value(node) or ""
    quote = file.text(node)[0]
    current: Any = int(text) if text.isdigit() else text
    return Target(
        file.location(node),
        current,
        lambda value: (Splice(file.path, start, end, f"{quote}{value}{quote}"),),
        f"{name} at {file.location(node)}",
    )


def _in_python(scene: Scene, name: str) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    for file in scene.project.parsed(name):
        for node in file.nodes:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    place = target.target
                    if isinstance(place, cst.Subscript) and file.full_name(place.value) == "os.environ" and len(place.slice) == 1:
                        index = place.slice[0].slice
                        if isinstance(index, cst.Index) and string_value(index.value) == name:
                            yield file, node.value
            elif (
                isinstance(node, cst.Call)
                and file.full_name(node.func) == "os.environ.setdefault"
                and len(node.args) == 2
                and string_value(node.args[0].value) == name
            ):
                yield file, node.args[1].value


def _words(project: Project, path: str) -> Iterator[tuple[str, int, int]]:
    """Words of a script with their bytes and lines; comments left out."""
    raw = project.read(path).decode("utf-8", "surrogateescape")
    offset = 0
    for number, line in enumerate(raw.splitlines(keepends=True), 1):
        for match in WORD.finditer(line):
            if match[0].startswith("#"):
                break
            yield match[0], offset + len(line[: match.start()].encode("utf-8", "surrogateescape")), number
        offset += len(line.encode("utf-8", "surrogateescape"))
