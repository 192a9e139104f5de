"""Which source files of the owner's this rank runs: ranks on machines with a checkout each may run different ones."""

from __future__ import annotations

import contextlib
import os
import zlib

from .. import own, process
from ..objects import modules_of_program
from ..writer import fact

MOST_FILES = 100
MOST_BYTES = 1 << 20  # of one file


def write() -> None:
    """Tell path and checksum of the modules that are imported now; a process that trains alone has none to differ from."""
    if process.world_size() < 2:
        return
    found = {}
    for names in modules_of_program():
        path = names.get("__file__")
        name = own.inside(os.path.abspath(path)) if isinstance(path, str) and path.endswith(".py") else None
        if name and name not in found and len(found) < MOST_FILES:
            with contextlib.suppress(OSError), open(path, "rb") as file:  # modules may name a file that is none
                content = file.read(MOST_BYTES + 1)
                if len(content) <= MOST_BYTES:
                    found[name] = zlib.crc32(content)
    fact("sources", files=found)
