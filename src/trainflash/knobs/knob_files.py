"""The knob files: what each says, read and checked. A new knob of an existing edit kind needs only a file in `templates/knobs`.

History of `knob.v1`: first version. The kinds of edits and their fields stand in `kinds`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import yaml

from trainflash import resources
from trainflash.errors import UsageError
from trainflash.knobs import facts, patterns
from trainflash.knobs.edits.checks import CHECKS
from trainflash.knobs.facts import Condition
from trainflash.knobs.kinds import EDITS, ROLES, CallArgument, Edit, Exchange
from trainflash.schema import KINDS, Kind, documents, from_plain
from trainflash.schema.findings import Change
from trainflash.schema.summaries import SETTINGS

Read = TypeVar("Read")
MEND = "correct the knob file; CONTRIBUTING.md says what each field holds, and templates/knobs has examples"
QUOTES = "put the text into quotes: it has a comma, a colon or a brace in it, which mean something else in YAML"


@dataclass(frozen=True)
class Effect:
    """What to expect, and the public documents that say so."""

    expected: str
    source: tuple[str, ...]


@dataclass(frozen=True)
class RiskWhen:
    """Another risk that holds in some runs."""

    when: tuple[Condition, ...]
    risk: Change
    because: str


@dataclass(frozen=True)
class Knob:
    """One knob file. `edits` are tried in order until one finds its place; `values` are YAML scalars or expressions over facts."""

    SCHEMA: ClassVar[str] = "knob.v1"
    name: str
    title: str
    answers: tuple[Kind, ...]
    what: str
    values: tuple[bool | int | str, ...]
    effect: Effect
    risk: Change
    check: tuple[str, ...]  # what must be checked when it is tried
    undo: str
    requires: tuple[Condition, ...] = ()
    risk_when: tuple[RiskWhen, ...] = ()
    edits: tuple[Any, ...] = ()  # of Edit, converted by kind
    chance: float = 0.5  # how often it pays where its preconditions hold; a program's own tuning log corrects it
    shown: bool = False  # its edits find a place only where the source near the finding's line shows the waste itself


def load(path: Path) -> Knob:
    """The knob in `path`. Raises `UsageError` naming the file and the field that is wrong."""
    try:
        plain = documents.load_yaml(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark
        where = path.name if mark is None else f"{path.name}:{mark.line + 1}:{mark.column + 1}"
        raise UsageError(f"{where}: cannot be read: {bad.problem}", QUOTES) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as bad:
        raise UsageError(f"{path.name}: cannot be read: {str(bad).splitlines()[0]}", MEND) from None
    if not isinstance(plain, dict):
        raise UsageError(f"{path.name}: is not a mapping", MEND)
    header = {key: value for key, value in plain.items() if key != "edits"}
    _known(Knob, {key: value for key, value in header.items() if key != "schema"}, path.name)
    _words(header, path.name)
    knob = _made(Knob, header, path.name)
    raw = plain.get("edits")
    if not isinstance(raw, list) or not raw:
        raise UsageError(f"{path.name}: edits: at least one edit is needed", MEND)
    edits = tuple(_edit(each, f"{path.name}: edits[{number}]") for number, each in enumerate(raw))
    knob = dataclasses.replace(knob, edits=edits)
    _consistent(knob, path)
    return knob


def _edit(plain: Any, where: str) -> Edit:
    kind = plain.get("kind") if isinstance(plain, dict) else None
    if kind not in EDITS:
        raise UsageError(f"{where}.kind: is {kind!r}, one of {', '.join(EDITS)} is needed", MEND)
    fields = {key: value for key, value in plain.items() if key != "kind"}
    _known(EDITS[kind], fields, where)
    made = _made(EDITS[kind], fields, where)
    at = getattr(made, "at", "program")
    if at not in ROLES and not facts.exists(at):
        raise UsageError(f"{where}.at: {at!r} is no role and no fact{_near(at, (*ROLES, *facts.beside(at)))}", MEND)
    for field in ("fact", "made", "default_fact", "behind"):
        if getattr(made, field, None) is not None:
            _a_fact(getattr(made, field), f"{where}.{field}")
    for number, name in enumerate(getattr(made, "checks", ())):
        if name not in CHECKS:
            raise UsageError(f"{where}.checks[{number}]: {name!r} is no check{_near(name, CHECKS)}", MEND)
    if at == "setting":
        _a_setting(getattr(made, "setting", None), f"{where}.setting")
    if isinstance(made, Exchange):
        return dataclasses.replace(made, more=_edit(made.more, f"{where}.more"), less=_edit(made.less, f"{where}.less"))
    return made


def _made(cls: type[Read], plain: Any, where: str) -> Read:
    try:
        return from_plain(cls, plain, where)
    except UsageError as bad:
        raise UsageError(bad.message, MEND) from None


def _near(word: str, words: Iterable[str]) -> str:
    """The word that was probably meant, as the end of a sentence; empty where none is near."""
    near = difflib.get_close_matches(word, tuple(words), 1)
    return f", did you mean {near[0]!r}?" if near else ""


def _words(header: Mapping[str, Any], where: str) -> None:
    """Refuse a finding or a risk that there is not, with those that there are."""
    answers = header.get("answers")
    asked = [("answers", each, KINDS) for each in (answers if isinstance(answers, list) else ())]
    for field, word, words in [*asked, ("risk", header.get("risk"), get_args(Change))]:
        if isinstance(word, str) and word not in words:
            raise UsageError(f"{where}: {field}: {word!r} is none of {', '.join(words)}", MEND)


def _known(cls: type, plain: Mapping[str, Any], where: str) -> None:
    """Refuse misspelt keys, which `from_plain` would ignore."""
    names = {field.name for field in dataclasses.fields(cls)}
    for key, value in plain.items():
        if key not in names:
            raise UsageError(f"{where}: unknown field {key!r}{_near(str(key), names)}", QUOTES if " " in str(key) else MEND)
        nested = {"requires": Condition, "risk_when": RiskWhen, "effect": Effect, "when": Condition}.get(str(key))
        for number, item in enumerate(value if isinstance(value, list) else [value]):
            if nested is not None and isinstance(item, dict):
                _known(nested, item, f"{where}: {key}[{number}]")


def _a_setting(name: str | None, where: str) -> None:
    if name not in SETTINGS:
        raise UsageError(f"{where}: {name!r} is no setting{_near(str(name), SETTINGS)}", MEND)


def _a_fact(name: str, where: str, mend: str = MEND) -> None:
    if not facts.exists(name):
        raise UsageError(f"{where}: {name!r} is no fact{_near(name, facts.beside(name))}", mend)


def _consistent(knob: Knob, path: Path) -> None:
    conditions = [*enumerate(knob.requires)] + [(number, each) for risk in knob.risk_when for number, each in enumerate(risk.when)]
    for number, condition in conditions:
        given = [name for name in ("equals", "differs", "below", "above", "exists") if getattr(condition, name) is not None]
        if len(given) != 1:
            raise UsageError(f"{path.name}: requires[{number}]: exactly one of equals, differs, below, above, exists is needed", MEND)
        _a_fact(condition.fact, f"{path.name}: requires[{number}].fact")
        for least in (condition.above, condition.below):
            if condition.fact == "torch" and least is not None and least < 100:
                raise UsageError(f"{path.name}: requires[{number}]: torch 2.6 is 206, and 2.13 is 213, not {least}", MEND)
    for number, edit in enumerate(knob.edits):
        if isinstance(edit, CallArgument) and edit.written is not None and knob.values != (True,):
            raise UsageError(f"{path.name}: edits[{number}].written: stands for the value of `values: [true]` alone", MEND)
    for number, value in enumerate(knob.values):
        for name in facts.names_in(value):
            _a_fact(name, f"{path.name}: values[{number}]", "a text stands in quotes of its own: \"'high'\"")
    if knob.name != path.stem:
        raise UsageError(f"{path.name}: name: is {knob.name!r}, the file's name says {path.stem!r}", MEND)
    if not knob.answers or not knob.values or not knob.check or not knob.effect.source:
        raise UsageError(f"{path.name}: answers, values, check and effect.source may not be empty", MEND)
    if not 0 < knob.chance <= 1:
        raise UsageError(f"{path.name}: chance: is {knob.chance}, a share above 0 and up to 1 is needed", MEND)
    if "compute" in knob.answers:
        raise UsageError(f"{path.name}: answers: compute is what a healthy program is told, and needs no knob", MEND)


@functools.cache
def catalogue() -> tuple[Knob, ...]:
    """All knobs, by name."""
    return tuple(load(path) for path in sorted((resources.folder("templates") / "knobs").glob("*.yaml")))


@functools.cache
def by_name() -> Mapping[str, Knob]:
    """All knobs under their names."""
    return {knob.name: knob for knob in catalogue()}


def get(name: str) -> Knob:
    """The knob called `name`. Raises `UsageError` that lists near names, or names the pattern that took its place."""
    wanted = name.replace("-", "_")
    if wanted not in by_name() and (pattern := patterns.get(wanted)):
        what = "is a pattern, no knob" if pattern.name == wanted else f"is a pattern now, {pattern.name}"
        raise UsageError(
            f"{wanted} {what}: {pattern.title}",
            f"`trainflash explain {pattern.name}` shows the rewrite; `trainflash optimize try --patch FILE -- CMD` tries a patch",
        )
    if wanted not in by_name():
        near = difflib.get_close_matches(wanted, by_name(), 3, 0.4)
        raise UsageError(f"there is no knob {name!r}", f"did you mean {', '.join(near)}?" if near else f"knobs: {', '.join(by_name())}")
    return by_name()[wanted]
