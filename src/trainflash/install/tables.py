"""A marked block at the end of the owner's TOML file: would the file still say what it said?"""

from __future__ import annotations

import sys
from typing import Any

from trainflash.install import blocks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def unfit(content: bytes, body: str, relative: str) -> str:
    """Why the block cannot be added to a TOML file with that content; "" when it can. Raises `UsageError` for damaged marks."""
    before, _, after = blocks.split(content, relative)
    try:
        _parsed(before + after)
    except ValueError as bad:
        return f"it is no valid TOML: {bad}"
    try:
        _parsed(blocks.put(content, body, relative))
    except ValueError:
        return "it has a table of that name already"
    return ""


def _parsed(content: bytes) -> dict[str, Any]:
    return tomllib.loads(content.decode("utf-8"))
