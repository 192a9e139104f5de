"""Values that the command line declares: argparse's `add_argument` and `set_defaults`, click's `option`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, positional, string_value
from trainflash.knobs.splices import Splice

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
    rules: tuple[cst.Call, ...] = ()  # whose type and choices hold, where that is not `call`

    @property
    def flag(self) -> str:
        return next((word for word in self.spellings if word.startswith("--")), self.spellings[0] if self.spellings else "")


def chosen(option: Option, write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`write`, which raises `UsageError` for a value that the option's own `choices` or `type` would refuse.

    A type reads texts only: what is typed in the command, and a default that is a text.
    """

    rules = option.rules or (option.call,)

    def within(value: Any) -> Any:
        here = option.file.location(option.call)
        if not all(_is_choice(call, value) for call in rules):
            raise refuse(f"{here}: {value!r} is none of the choices of {option.flag}")
        made = write(value)
        read = isinstance(value, str) or any(not isinstance(each, Splice) or each.file != option.file.path for each in made)
        refused = next((call for call in rules if read and not _is_taken(option, call, value)), None)
        if refused is not None:
            kind = option.file.text(keyword(refused, "type").value)  # type: ignore[union-attr]
            raise refuse(f"{here}: {option.flag} takes {kind}, not {value!r}")
        return made

    return within


def _is_choice(call: cst.Call, value: Any) -> bool:
    """Whether `choices=` of argparse or `click.Choice(…)` lists the value; those that are not written out list nothing."""
    kind, choices = keyword(call, "type"), keyword(call, "choices")
    listed = choices.value if choices is not None else None
    if kind is not None and isinstance(kind.value, cst.Call) and (dotted(kind.value.func) or "").endswith("Choice") and kind.value.args:
        listed = kind.value.args[0].value
    if listed is None:
        return True
    if isinstance(listed, cst.Call) and dotted(listed.func) == "range":
        ends = [literal(arg.value) for arg in listed.args]
        return all(isinstance(end, int) for end in ends) and isinstance(value, int) and value in range(*ends)
    return isinstance(listed, (cst.List, cst.Tuple, cst.Set)) and value in [literal(element.value) for element in listed.elements]


def _kind(call: cst.Call) -> str:
    """The last name of an option's `type`: `int`, click's `INT` and `IntRange(…)` are one."""
    given = keyword(call, "type")
    if given is None:
        return ""
    name = (dotted(given.value.func if isinstance(given.value, cst.Call) else given.value) or "?").split(".")[-1]
    return {"INT": "int", "IntRange": "int", "FLOAT": "float", "FloatRange": "float", "STRING": "str", "BOOL": "switch"}.get(name, name)


def _is_taken(option: Option, call: cst.Call, value: Any) -> bool:
    """Whether the option's `type` takes the value; a function of the program's own is believed to take what is like the default."""
    kind = _kind(call)
    if kind in ("", "str", "Choice"):
        return True
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool) and _in_range(call, value)
    if kind == "float":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and _in_range(call, value)
    if kind in ("bool", "switch"):
        return value is True or (value is False and kind == "switch")  # to bool, any word is true
    default = literal(option.default) if option.default is not None else UNKNOWN
    return default is UNKNOWN or default is None or isinstance(value, type(default))


def _in_range(call: cst.Call, value: float) -> bool:
    """Whether the value lies in click's `IntRange(least, most)`."""
    given = keyword(call, "type")
    if given is None or not isinstance(given.value, cst.Call):
        return True
    ends = []
    for place, name in enumerate(("min", "max")):
        end = keyword(given.value, name) or positional(given.value, place)
        ends.append(literal(end.value) if end is not None else None)
    return all(end is None or isinstance(end, (int, float)) for end in ends) and (
        (ends[0] is None or value >= ends[0]) and (ends[1] is None or value <= ends[1])
    )


def declared(project: Project, name: str) -> list[Option]:
    """Options whose value the program reads as `name`; one that `set_defaults` gives comes alone, because it wins."""
    found = list(_declared(project, name))
    for file in project.parsed("set_defaults", name):
        for call in file.calls:
            arg = keyword(call, name) if (dotted(call.func) or "").split(".")[-1] == "set_defaults" else None
            if arg is not None:
                spellings = tuple(word for option in found for word in option.spellings)
                return [Option(file, call, spellings or (f"--{name}",), arg.value, None, tuple(option.call for option in found))]
    return found


def spread_defaults(project: Project) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """Dictionaries that `set_defaults(**…)` unpacks: what they hold wins over an option's own default."""
    for file in project.parsed("set_defaults"):
        for call in file.calls:
            if (dotted(call.func) or "").split(".")[-1] == "set_defaults":
                yield from ((file, arg.value) for arg in call.args if arg.star == "**")


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
