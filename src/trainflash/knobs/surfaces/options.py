"""Values that the command line declares: argparse's `add_argument` and `set_defaults`, click's `option`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, string_value

DECLARES = {"add_argument", "option", "add_option"}
SWITCHES = {"store_true": False, "store_false": True}


@dataclass(frozen=True)
class Option:
    """One declared option. `default` is the expression of its default, None where it has none; `implied` is what that means."""

    file: PythonFile
    call: cst.Call
    spellings: tuple[str, ...]
    default: cst.BaseExpression | None
    implied: object

    @property
    def flag(self) -> str:
        return next((word for word in self.spellings if word.startswith("--")), self.spellings[0] if self.spellings else "")


def chosen(option: Option, write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`write`, which raises `UsageError` for a value that is none of the option's `choices`."""
    choices = keyword(option.call, "choices")
    if choices is None:
        return write

    def within(value: Any) -> Any:
        words = choices.value
        listed = [literal(element.value) for element in words.elements] if isinstance(words, (cst.List, cst.Tuple, cst.Set)) else []
        if value not in listed:
            raise refuse(f"{option.file.location(option.call)}: {value!r} is none of the choices of {option.flag}")
        return write(value)

    return within


def declared(project: Project, name: str) -> list[Option]:
    """Options whose value the program reads as `name`; one that `set_defaults` gives comes alone, because it wins."""
    found = list(_declared(project, name))
    for file in project.parsed("set_defaults", name):
        for call in file.calls:
            arg = keyword(call, name) if (dotted(call.func) or "").split(".")[-1] == "set_defaults" else None
            if arg is not None:
                spellings = tuple(word for option in found for word in option.spellings)
                return [Option(file, call, spellings or (f"--{name}",), arg.value, None)]
    return found


def _declared(project: Project, name: str) -> Iterator[Option]:
    for file in project.parsed(name.split("_")[-1]):
        for call in file.calls:
            function = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or ""
            if function not in DECLARES:
                continue
            spellings = tuple(text for arg in call.args if arg.keyword is None and (text := string_value(arg.value)) is not None)
            if name not in _destinations(call, spellings):
                continue
            default, action = keyword(call, "default"), keyword(call, "action")
            implied = SWITCHES.get(string_value(action.value) or "") if action is not None else None
            flags = tuple(word for text in spellings for word in text.split("/") if word.startswith("-"))
            negated = tuple(f"--no-{flag[2:]}" for flag in flags if flag.startswith("--"))
            yield Option(file, call, flags + negated, None if default is None else default.value, implied)


def _destinations(call: cst.Call, spellings: tuple[str, ...]) -> set[str]:
    dest = keyword(call, "dest")
    if dest is not None:
        return {string_value(dest.value) or ""}
    plain = [text for text in spellings if not text.startswith("-")]
    if plain:
        return set(plain)
    long = [text.split("/")[0] for text in spellings if text.startswith("--")]
    return {(long or list(spellings) or [""])[0].lstrip("-").replace("-", "_")}
