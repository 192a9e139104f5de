"""Secrets of a command, kept apart from every artefact: experiments name them by a mark, and run again with what stands here.

`<sandbox>/secrets.json` is readable by its owner alone, is in no report, export or bundle, and goes with `discard`. The other way, to
ask for the secret again at each rerun, would break `verify --resume`, `optimize auto` and everything that runs while nobody looks.
What is written elsewhere holds the mark from the first byte on, so that a kill at any moment leaves no secret behind.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import replace
from pathlib import Path

from trainflash import redact
from trainflash.errors import UsageError
from trainflash.schema import Command

NAME = "secrets.json"
_MARK = re.compile(r"^\[redacted ([0-9a-f]{16})\]$")


def seal(directory: Path, command: Command) -> Command:
    """The command with a mark for each word and variable that holds a secret; the secrets go into the vault of `directory`."""
    shown, environment = redact.argv(command.argv), redact.environment(command.env)
    if shown == command.argv and environment == command.env:
        return command
    kept = _read(directory / NAME)
    marks = {secret: digest for digest, secret in kept.items()}

    def marked(value: str, safe: str) -> str:
        if value == safe or _MARK.match(value):
            return value
        digest = marks.setdefault(value, secrets.token_hex(8))
        kept[digest] = value
        return f"[redacted {digest}]"

    words = tuple(map(marked, command.argv, shown))
    variables = {name: marked(value, environment[name]) for name, value in command.env.items()}
    _write(directory / NAME, kept)
    return replace(command, argv=words, env=variables)


def unseal(directory: Path, command: Command) -> Command:
    """The command as it was typed; a mark whose secret is gone from the vault stays, for who only looks."""
    if not any(_MARK.match(value) for value in (*command.argv, *command.env.values())):
        return command
    kept = _read(directory / NAME)

    def clear(value: str) -> str:
        mark = _MARK.match(value)
        return kept.get(mark[1], value) if mark else value

    return replace(command, argv=tuple(map(clear, command.argv)), env={name: clear(value) for name, value in command.env.items()})


def require(command: Command) -> Command:
    """The command, when it can be run. Raises `UsageError` when one of its secrets is gone."""
    if any(_MARK.match(value) for value in (*command.argv, *command.env.values())):
        raise UsageError("the secrets of this command are gone from the sandbox", "give the command again after `--`")
    return command


def _read(path: Path) -> dict[str, str]:
    try:
        return json.loads(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as bad:
        raise UsageError(f"{path}: {bad}", "remove that file and give the command again after `--`") from None


def _write(path: Path, kept: dict[str, str]) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    made = path.with_name(f".{path.name}-{os.getpid()}")
    made.unlink(missing_ok=True)
    with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="ascii") as file:
        json.dump(kept, file)
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)
