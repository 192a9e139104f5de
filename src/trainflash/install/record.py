"""`.trainflash-install.json`: what was written into a project, so that it can be brought up to date and taken out again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trainflash import __version__
from trainflash.errors import UsageError

FILE = ".trainflash-install.json"
SCHEMA = "trainflash-install.v2"


@dataclass
class Settings:
    """One JSON file: did we create it, SHA-256 after our last edit, the additions, and their places in the text.

    `spans` is None once the file was edited by others between two of our edits: places are then unknown, values are not.
    """

    created: bool
    after: str
    additions: list[tuple[list[str], Any]]
    spans: list[tuple[int, str]] | None


@dataclass
class Record:
    """Blocks: did their file exist before. Files that are ours alone: their SHA-256. Folders that we made."""

    blocks: dict[str, bool] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Settings] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def text(self) -> bytes:
        """The file's content."""
        document = {"schema": SCHEMA, "version": __version__, **asdict(self)}
        return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def read(root: Path) -> Record:
    """The record of the project at `root`; empty when nothing is installed. Raises `UsageError` for a damaged one."""
    path = root / FILE
    if not path.exists():
        return Record()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("schema") != SCHEMA:
            raise ValueError("another version of the format")
        document.pop("version", None)
        settings = {name: _settings(entry) for name, entry in document.pop("settings", {}).items()}
        record = Record(settings=settings, **document)
        if not all(isinstance(part, dict) for part in (record.blocks, record.files)) or not isinstance(record.folders, list):
            raise ValueError("not of the expected form")
        return record
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as bad:
        raise UsageError(f"{FILE} cannot be read: {bad}", "remove it; files that it listed must then be removed by hand") from None


def _settings(entry: dict[str, Any]) -> Settings:
    found = Settings(**entry)
    for keys, _ in found.additions:
        if not keys or not all(isinstance(key, str) for key in keys):
            raise ValueError("an addition without keys")
    for at, text in found.spans or []:
        if not isinstance(at, int) or not isinstance(text, str):
            raise ValueError("a span without a place")
    return found


def digest(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()
