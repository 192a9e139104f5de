"""What a run wrote in the project: kept for a metric that reads files, and given to the next run when it is to resume."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from trainflash.schema import Sandbox

_MOST_BYTES = 4 << 30
_CACHES = {"__pycache__", ".git"}


class View(Protocol):
    """What this module needs of an opened view."""

    protection: str
    layer: str
    uppers: tuple[tuple[str, str], ...]

    def written(self) -> tuple[str, ...]: ...


def gather(view: View, sandbox: Sandbox, target: Path) -> Path | None:
    """Copy what was written below the repository to `target`; None when that is too much, or cannot be told."""
    if _root(view, sandbox) is None:
        return None
    paths = list(files(view, sandbox))
    if sum(path.stat().st_size for path, _ in paths) > _MOST_BYTES:
        return None
    target.mkdir(parents=True, exist_ok=True)
    for path, name in paths:
        to = target / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
    return target


def files(view: View, sandbox: Sandbox) -> Iterator[tuple[Path, str]]:
    """Each file that was written below the repository, with its path from there; none where that cannot be told."""
    root = _root(view, sandbox)
    for path in _written(view, root) if root is not None else ():
        yield path, str(path.relative_to(root))


def put(view: View, sandbox: Sandbox, source: Path) -> None:
    """Lay what an earlier run wrote into a view that no program has entered yet."""
    root = _root(view, sandbox)
    if root is not None:
        shutil.copytree(source, root, dirs_exist_ok=True)


def _root(view: View, sandbox: Sandbox) -> Path | None:
    """The folder in which writes below the repository land."""
    if view.protection == "mount":
        return next((Path(upper) for upper, at in view.uppers if at == sandbox.repository), None)
    return Path(view.layer, "project") if view.layer else None


def _written(view: View, root: Path) -> Iterator[Path]:
    if view.protection == "mount":
        for at, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in _CACHES]
            yield from (path for name in files if (path := Path(at, name)).is_file() and not path.is_symlink())
        return
    for name in view.written():
        path = Path(name)
        if path.is_file() and not path.is_symlink() and not _CACHES & set(path.parts):
            yield path
