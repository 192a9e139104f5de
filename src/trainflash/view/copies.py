"""What stands in for a mount view: a fresh copy of the checkout for each run, with links to the ignored files of the original.

Ignored folders become folders of the copy, so that a program that makes new files there makes them in the copy; the files in
them are links, so that data is read where it is. Writing through a link is refused by Landlock, and without it seen afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from trainflash.schema import Sandbox, Side
from trainflash.view import listing

LINKED_FILES = 20_000  # beyond these, a folder of the original becomes one link
_SKIPPED = frozenset({"__pycache__"})


def make(sandbox: Sandbox, side: Side, folder: Path) -> dict[str, tuple[int, int]]:
    """Fill `folder`; returns each file's (size, mtime in ns) as it was copied, for `written`."""
    shutil.copytree(sandbox.checkout(side), folder, symlinks=True, ignore=lambda at, _: [".git"] if at == sandbox.checkout(side) else [])
    _make_repository(sandbox, folder / ".git")
    left = LINKED_FILES
    for path in listing.read(sandbox).theirs:
        target = folder / path
        if target.is_dir() and not target.is_symlink() and not os.listdir(target):
            target.rmdir()  # a submodule, of which a checkout has only the folder
        if os.path.lexists(target) or not _parent_is_ours(folder, path) or Path(path).name in _SKIPPED:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        left -= _link(Path(sandbox.repository, path), target, left)
    return stamps(folder)


def led(word: str, original: str, copy: str) -> str:
    """A word of a command line, PATH or NAME=PATH, with the copy's path in place of the original's where the copy has that.

    What is one file in both, such as an environment that is linked whole, stays as it is named.
    """
    name, equals, value = word.rpartition("=")
    if not os.path.isabs(value) or os.sep in name:
        return word
    folder, last = os.path.split(os.path.normpath(value))
    real = os.path.join(os.path.realpath(folder), last)
    if not Path(real).is_relative_to(original):
        return word
    there = os.path.normpath(os.path.join(copy, os.path.relpath(real, original)))
    same = os.path.realpath(os.path.dirname(there)) == os.path.dirname(real)
    return word if same or not os.path.lexists(there) else f"{name}{equals}{there}"


def written(folder: Path, before: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    """Paths relative to `folder` that are new, changed or gone."""
    now = stamps(folder)
    return tuple(sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path)))


def _make_repository(sandbox: Sandbox, made: Path) -> None:
    """A repository of the copy's own, so that a branch, a stash or a tag made there is none of the owner's; objects are borrowed."""
    common = listing.git_dir(sandbox)
    if common is None:
        return
    own = Path(listing.own_git_dir(sandbox))
    (made / "objects" / "info").mkdir(parents=True)
    (made / "refs").mkdir()
    (made / "objects" / "info" / "alternates").write_bytes(os.fsencode(os.path.join(common, "objects")) + b"\n")
    for place, names in ((own, ("HEAD", "index")), (Path(common), ("config", "packed-refs", "shallow", "info/exclude"))):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                (made / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(place / name, made / name)
    for name in ("heads", "tags", "remotes"):
        if Path(common, "refs", name).is_dir():
            shutil.copytree(Path(common, "refs", name), made / "refs" / name)


def _parent_is_ours(folder: Path, path: str) -> bool:
    """Whether no part of the path is a link or a file of the checkout."""
    at = folder
    for part in Path(path).parts[:-1]:
        at = at / part
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            return False
    return True


def _link(original: Path, target: Path, left: int) -> int:
    """Link a file or the files of a folder; returns how many links that took."""
    whole = original.is_symlink() or not original.is_dir() or (original / "pyvenv.cfg").exists() or original.name == ".git"
    if whole or left <= 0:
        target.symlink_to(original)
        return 1
    target.mkdir()
    made = 1
    for entry in sorted(os.scandir(original), key=lambda entry: entry.name):
        if entry.name not in _SKIPPED:
            made += _link(Path(entry.path), target / entry.name, left - made)
    return made


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for at, names, files in os.walk(folder):
        if at == str(folder) and ".git" in names:
            names.remove(".git")
        for name in (*files, *(name for name in names if os.path.islink(os.path.join(at, name)))):
            facts = os.lstat(os.path.join(at, name))
            found[os.path.relpath(os.path.join(at, name), folder)] = (facts.st_size, facts.st_mtime_ns)
    return found
