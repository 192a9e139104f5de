"""Command lines of a shell script: their words, where each stands, and which Python program a line starts."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_WORD = r"(?:[^\s'\";|&<>()\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+"
_TOKEN = re.compile(rf"(?P<goes_on>\\\n)|(?P<comment>#[^\n]*)|(?P<ends>[\n;|&]+)|(?P<word>{_WORD})")


@dataclass(frozen=True)
class Word:
    """One word as it is written, the byte that it begins at, and its line."""

    text: str
    start: int
    line: int

    @property
    def plain(self) -> str:
        """The word without its quotes; variables stay as they are written."""
        try:
            return "".join(shlex.split(self.text))
        except ValueError:
            return self.text


@functools.lru_cache(maxsize=32)
def lines(raw: bytes) -> tuple[tuple[Word, ...], ...]:
    """The command lines of a script, comments left out; a line that goes on behind a backslash is one."""
    text = raw.decode("utf-8", "surrogateescape")
    found: list[tuple[Word, ...]] = []
    words: list[Word] = []
    for token in _TOKEN.finditer(text):
        if token["ends"] and words:
            found.append(tuple(words))
            words = []
        elif token["word"]:
            start = len(text[: token.start()].encode("utf-8", "surrogateescape"))
            words.append(Word(token[0], start, text.count("\n", 0, token.start()) + 1))
    return (*found, tuple(words)) if words else tuple(found)


def programs(words: Sequence[str], file: Callable[[str], str | None]) -> Iterator[tuple[int, str]]:
    """Index and path of each word that names a Python file or, behind `-m`, a module of the project; `file` finds a path from where the
    command runs."""
    for number, word in enumerate(words):
        if word in ("-m", "--module") and number + 1 < len(words):
            base = words[number + 1].replace(".", "/")
            found = file(f"{base}.py") or file(f"{base}/__main__.py")
            if found:
                yield number + 1, found
        elif word.endswith(".py"):
            found = file(word)
            if found:
                yield number, found
