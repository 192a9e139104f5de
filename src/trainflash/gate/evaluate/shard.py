"""The fixed text that every evaluation reads: the owner's, else the bundled one."""

from __future__ import annotations

from pathlib import Path

from trainflash import resources
from trainflash.errors import UsageError
from trainflash.gate.config import SHARD


def shard_path(path: str = SHARD) -> Path:
    """`path` where it is a file; for the default name elsewhere, the bundled shard. Raises `UsageError` for another that is missing."""
    given = Path(path)
    if given.is_file():
        return given
    if path == SHARD:
        return resources.folder("bench/data") / given.name
    raise UsageError(f"{path}: there is no such shard", "give a text file, or leave it out for the bundled one")


def shard_bytes(path: str = SHARD) -> bytes:
    """The shard's bytes. Raises `UsageError` for an empty one."""
    found = shard_path(path)
    try:
        text = found.read_bytes()
    except OSError as bad:
        raise UsageError(f"{found}: {bad.strerror or bad}", "give a text file that can be read") from None
    if len(text) < 2:
        raise UsageError(f"{found} is empty", "an evaluation needs text")
    return text
