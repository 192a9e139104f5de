"""What stands behind `--author`: a preset's name with flags of one's own, `acp:NAME`, `manual`, or any command line."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.author.presets import ACP, NAMES, PRESETS, STATE, Preset
from trainflash.errors import UsageError

MANUAL = "manual"
_PLACES = ("brief", "dir", "dollars", "minutes", "agent")


@dataclass(frozen=True)
class Author:
    """Who writes. `argv` is empty for `manual`, whose task waits in `folder` ("": in the sandbox)."""

    name: str
    argv: tuple[str, ...] = ()
    folder: str = ""
    preset: Preset | None = None
    agent: str = ""  # of `acp:NAME`

    @property
    def by_hand(self) -> bool:
        return not self.argv

    def state(self) -> list[str]:
        """What stays writable in HOME for good: where assistants keep their logins."""
        return [str(Path.home() / place) for place in STATE]

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """`inherited` without what would tell the program that it is a part of something else."""
        gone = self.preset.unset if self.preset else ()
        return {name: value for name, value in inherited.items() if name not in gone and not name.startswith("TRAINFLASH_")}

    def words(self, *, brief: str, folder: str, files: Sequence[str], dollars: float, minutes: float) -> tuple[str, ...]:
        """The command line with its places filled in."""
        given = {"brief": brief, "dir": folder, "dollars": f"{dollars:.2f}", "minutes": f"{minutes:g}", "agent": self.agent}
        filled: list[str] = []
        for word in self.argv:
            filled += files if word == "{files}" else [_filled(word, given)]
        return tuple(filled)


def named(text: str) -> Author:
    """The author that `text` names. Raises `UsageError` for no command, an unknown preset, and a program that is not there."""
    try:
        words = shlex.split(text)
    except ValueError as bad:
        raise UsageError(f"--author {text!r}: {bad}", "quote it as for a shell") from None
    if not words or not words[0]:
        raise UsageError("--author: there is no command", f"name one of {', '.join(NAMES)}, or give a command line")
    name, _, rest = words[0].partition(":")
    if name == MANUAL:
        if len(words) > 1:
            raise UsageError(f"--author manual takes no more words, not {words[1]!r}", "`manual:FOLDER` names the folder of the task")
        return Author(MANUAL, folder=rest)
    preset = next((each for each in PRESETS if each.name == words[0]), None)
    if name == ACP.name and (rest or ":" in words[0]):
        if not rest:
            raise UsageError("--author acp: needs the agent's name", "such as acp:codex; `acpx --help` lists them")
        preset = ACP
    own = os.path.abspath(words[0]) if os.sep in words[0] else words[0]  # it is started in another folder than this one
    argv = (*preset.argv, *words[1:]) if preset else (own, *words[1:])
    if not _found(argv[0]):
        mend = preset.get if preset else f"check the command; presets are {', '.join(NAMES)}"
        raise UsageError(f"--author {words[0]}: there is no program {argv[0]}", mend)
    if preset is None:
        return Author(os.path.basename(argv[0]), argv)
    return Author(words[0], argv, preset=preset, agent=rest if preset is ACP else "")


def _found(program: str) -> bool:
    return os.access(program, os.X_OK) and os.path.isfile(program) if os.sep in program else shutil.which(program) is not None


def _filled(word: str, given: Mapping[str, str]) -> str:
    for name in _PLACES:
        word = word.replace("{" + name + "}", given[name])
    return word
