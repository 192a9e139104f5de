"""One file before and after a write-back, and how it is read from disk."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError


@dataclass(frozen=True)
class Content:
    """One file: `kind` as git writes it ("100644", "100755", "120000": a link, whose target is `data`)."""

    kind: str
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of kind and bytes."""
        return hashlib.sha256(self.kind.encode() + b"\0" + self.data).hexdigest()


@dataclass(frozen=True)
class Change:
    """One file of the project: `path` relative to it; None: absent."""

    path: str
    before: Content | None
    after: Content | None


def on_disk(project: Path, path: str) -> Content | None:
    """The file as it is now; None where there is nothing. Raises `UsageError` for a folder or a special file."""
    target = project / path
    try:
        facts = target.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return Content("120000", os.readlink(os.fsencode(target)))
        if stat.S_ISREG(facts.st_mode):
            return Content("100755" if facts.st_mode & stat.S_IXUSR else "100644", target.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as bad:
        raise UsageError(f"{target}: {bad.strerror}", "run as the owner of the project") from None
    raise UsageError(f"{target} is no regular file", "restore the file, or make a new sandbox")
