"""Paths inside the project, and writing to them at once or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from trainflash.errors import UsageError


def root_of(project: Path) -> Path:
    """The project's folder, links followed. Raises `UsageError` when it is none."""
    if not project.is_dir():
        raise UsageError(f"{project} is not a folder", "name the project that the rules are for")
    return project.resolve()


def inside(root: Path, relative: str, *, folder: bool = False) -> Path:
    """The file (or folder) that `relative` leads to, links followed. Raises `UsageError` when that is outside of the project."""
    path = (root / PurePosixPath(relative)).resolve()
    if path == root or not path.is_relative_to(root):
        raise UsageError(f"{relative} leads out of the project, to {path}", "make it an ordinary file, or leave that assistant out")
    if path.is_dir() and not folder:
        raise UsageError(f"{relative} is a folder, where a file is expected", "rename it, or leave that assistant out")
    return path


def missing_folders(root: Path, paths: Iterable[Path]) -> list[str]:
    """Folders below `root` that must be made before `paths` can be written."""
    found = {
        folder.relative_to(root).as_posix()
        for path in paths
        for folder in path.parents
        if folder.is_relative_to(root) and folder != root and not folder.exists()
    }
    return sorted(found)


def require_writable(root: Path, paths: Iterable[Path]) -> None:
    """Raises `UsageError` when one of `paths` could not be written, so that nothing is written by half."""
    for path in paths:
        holder = next(folder for folder in path.parents if folder.exists())
        if not holder.is_dir():
            raise UsageError(f"{path.parent} cannot be made: {holder} is a file", "rename it, or leave that assistant out")
        for place in (holder, *([path] if path.exists() else [])):
            if not os.access(place, os.W_OK) or not place.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
                shown = "." if place == root else place.relative_to(root).as_posix()
                raise UsageError(f"{shown} is read-only, so nothing was written", "make it writable, or leave that assistant out")


def write(path: Path, content: bytes) -> None:
    """Replace `path` at once, so that an interruption leaves the old file or the new one; folders are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".trainflash-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if path.exists():
            shutil.copymode(path, name)
        else:
            os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as bad:
        raise UsageError(f"{path} cannot be written: {bad.strerror}", "check the folder's permissions and the free space") from None
