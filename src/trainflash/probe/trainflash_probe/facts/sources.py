"""Which source files of the owner's run: for a plan, which reads no others, and to compare the checkouts of several machines."""

from __future__ import annotations

import contextlib
import os
import zlib

from .. import own, process
from ..objects import modules_of_program
from ..writer import fact

MOST_FILES = 100
MOST_NAMES = 5_000
MOST_BYTES = 1 << 20  # of one file


def write() -> None:
    """Tell path and checksum of the modules that are imported now; a process that trains alone has none to differ from."""
    if process.world_size() < 2:
        return
    found = {}
    for name, path in list(_imported().items())[:MOST_FILES]:
        with contextlib.suppress(OSError), open(path, "rb") as file:  # modules may name a file that is none
            content = file.read(MOST_BYTES + 1)
            if len(content) <= MOST_BYTES:
                found[name] = zlib.crc32(content)
    fact("sources", files=found)


def names() -> None:
    """Tell the paths of all modules that the first rank has imported now; of more than anybody would read, nothing."""
    found = list(_imported()) if not process.rank() else []
    if 0 < len(found) <= MOST_NAMES:
        fact("imported", files=found)


def _imported() -> dict:
    """Files of the owner's modules, by their path below the owner's root, in the order of their import."""
    found = {}
    for known in modules_of_program():
        path = known.get("__file__")
        name = own.inside(os.path.abspath(path)) if isinstance(path, str) and path.endswith(".py") else None
        if name:
            found.setdefault(name, path)
    return found
