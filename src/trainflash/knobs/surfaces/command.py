"""Words of the command itself: options, overrides and variables that the owner typed behind `--`. No file holds them.

An edit here is a `WordChange` of the experiment: the candidate runs under the changed command, and the owner is told to type it so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainflash.knobs.project import Project, sets_option
from trainflash.knobs.surfaces.words import TYPED, spelled, value_of, values_of
from trainflash.schema import WordChange

_PARTS = re.compile(rb"\badd_subparsers\b|\.command\(|\.group\(")  # an option behind a subcommand's words is another parser's


@dataclass(frozen=True)
class Word:
    """A value in a word of the command: `text` from `start` on."""

    at: int
    word: str
    start: int
    text: str

    @property
    def value(self) -> Any:
        return value_of(self.text)

    def write(self, value: Any) -> tuple[WordChange, ...]:
        """The change that writes `value` there, in the spelling of the old one."""
        return (WordChange(self.at, self.word, self.word[: self.start] + spelled(self.text, value)),)


def option(project: Project, options: tuple[str, ...]) -> Word | None:
    """The value of the only word of the program's own that sets one of `options`; None where that is unclear or not plain."""
    words, first = project.command.argv, _first(project)
    places = values_of(words[first:], options, project.flags) or ()
    found = [Word(first + at, words[first + at], begin, words[first + at][begin:]) for at, begin in places]
    plain = len(found) == 1 and TYPED.fullmatch(found[0].text) and not found[0].text.startswith("-")
    return found[0] if plain else None


def variable(project: Project, name: str) -> Word | None:
    """The value that the command gives to a variable, as `env NAME=4 python …` does; None where it is not plain."""
    found = [
        Word(at, word, len(name) + 1, word[len(name) + 1 :]) for at, word in enumerate(project.command.argv) if word.startswith(f"{name}=")
    ]
    return found[0] if len(found) == 1 and TYPED.fullmatch(found[0].text) else None


def switch(project: Project, options: tuple[str, ...], implied: object) -> tuple[object, Callable[[Any], tuple[WordChange, ...]] | None]:
    """What an option without a value means now, and how it is changed; `implied` is what holds without it.

    The writer is None where the command names no entry of the program that an option could be put behind.
    """
    words = project.command.argv
    given = [at for at in range(_first(project), len(words)) if any(sets_option(words[at], each, project.flags) for each in options)]
    if len(given) == 1:
        return not implied, lambda value: (WordChange(given[0], words[given[0]], None),)
    flag = next((each for each in options if each.startswith("--") and not each.startswith("--no-")), None)
    typed = flag is not None and project.entry_word is not None and "--" not in words
    if given or not typed or any(_PARTS.search(project.read(path)) for path in project.program):
        return implied, None
    return implied, lambda value: (WordChange(len(words), None, flag),)


def _first(project: Project) -> int:
    """Where the program's own words begin: behind its file, module or script; 0 where that is unknown."""
    named = [at for at, word in enumerate(project.command.argv) if project.from_cwd(word) in project.scripts]
    begins = project.entry_word if project.entry_word is not None else named[0] if named else -1
    return begins + 1
