"""A checkout exactly as it was committed: bytes without filters and line-ending conversion, times and permissions of the owner's files.

An empty folder is filled by git, with an index from which all that could make git convert is left out; a folder with files in it by
hand, which leaves alone what is right already.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.sandbox.git import Git, TreeEntry, common_dir
from trainflash.sandbox.snapshot import git_mode

_ATTRIBUTES = ".gitattributes"


@dataclass(frozen=True)
class Origin:
    """How one file of the owner's stood when it was stored: its content, time of change and permission bits."""

    oid: str
    mtime_ns: int
    mode: int


def write_checkout(repository: Git, commit_or_tree: str, folder: Path, origins: Mapping[str, Origin]) -> None:
    """Make `folder` hold exactly the files of a commit (its `.git` is left alone).

    A file with the content of its origin gets the origin's time and permissions, so that byte code which the owner's interpreter
    compiled stays valid. Files that already have the content are not written again.
    """
    wanted = repository.tree(commit_or_tree)
    if os.listdir(folder) in ([], [".git"]) and _may_fill(repository):
        _fill(repository, commit_or_tree, folder, [path for path in wanted if os.path.basename(path) == _ATTRIBUTES])
        umask = _umask()
        for path, entry in wanted.items():
            if entry.mode == "160000":
                os.makedirs(folder / path, exist_ok=True)
            elif os.path.basename(path) != _ATTRIBUTES:
                _age(os.path.join(folder, path), entry, origins.get(path), (0o777 if entry.mode == "100755" else 0o666) & ~umask)
        wanted = {path: entry for path, entry in wanted.items() if os.path.basename(path) == _ATTRIBUTES}
    else:
        _remove_others(folder, wanted)
    missing: dict[TreeEntry, list[str]] = {}
    algorithm = "sha256" if any(len(entry.oid) == 64 for entry in wanted.values()) else "sha1"
    for path, entry in wanted.items():
        target = folder / path
        if entry.mode == "160000":
            target.mkdir(parents=True, exist_ok=True)
        elif not _holds(target, entry, algorithm):
            missing.setdefault(entry, []).append(path)
    for entry, content in repository.blobs(list(missing)):
        for path in missing[entry]:
            _write(folder / path, entry, content)
            _age(os.path.join(folder, path), entry, origins.get(path))


def _umask() -> int:
    """Of this process, without setting it: other threads make files meanwhile."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o022)


def _may_fill(repository: Git) -> bool:
    """Whether git has no attributes left that would convert, beside those of the tree itself."""
    if (common_dir(repository) / "info" / "attributes").exists():
        return False
    return bool(repository.attempt("config", "--get", "attr.tree")[0])


def _fill(repository: Git, commit_or_tree: str, folder: Path, attributes: Sequence[str]) -> None:
    """Write all files but those with attributes, by git."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="index-") as scratch:
        own = repository.with_index(Path(scratch, "index"))
        own.run("read-tree", commit_or_tree)
        if attributes:
            own.run("update-index", "-z", "--force-remove", "--stdin", stdin=b"".join(os.fsencode(path) + b"\0" for path in attributes))
        own.run("checkout-index", "--all", "--quiet")


def _age(path: str, entry: TreeEntry, origin: Origin | None, made_with: int | None = None) -> None:
    """Give a file with the content of its origin that one's permissions and time. `made_with`: its permissions, where known."""
    if origin is None or origin.oid != entry.oid:
        return
    mode = origin.mode & 0o777 | 0o600
    if entry.mode != "120000" and mode != made_with:
        os.chmod(path, mode)
    os.utime(path, ns=(origin.mtime_ns, origin.mtime_ns), follow_symlinks=False)


def _holds(target: Path, entry: TreeEntry, algorithm: str) -> bool:
    """Whether `target` has the content and mode of `entry` already."""
    try:
        facts = target.lstat()
    except OSError:
        return False
    if git_mode(facts) != entry.mode or facts.st_size != entry.size or stat.S_ISDIR(facts.st_mode):
        return False
    content = os.fsencode(os.readlink(target)) if stat.S_ISLNK(facts.st_mode) else target.read_bytes()
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content).hexdigest() == entry.oid


def _write(target: Path, entry: TreeEntry, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        target.unlink()
    if entry.mode == "120000":
        os.symlink(content, os.fsencode(target))
        return
    with open(target, "xb") as file:
        file.write(content)
        if entry.mode == "100755":
            facts = os.fstat(file.fileno())
            os.fchmod(file.fileno(), facts.st_mode | (facts.st_mode & 0o444) >> 2)


def _remove_others(folder: Path, wanted: Mapping[str, TreeEntry]) -> None:
    """Remove everything in `folder` that is not wanted, or is wanted as another type of thing."""
    parents = {str(parent) for path in wanted for parent in Path(path).parents}
    links = {path for path, entry in wanted.items() if entry.mode == "160000"}
    for at, names, files in os.walk(folder, topdown=True):
        inside = os.path.relpath(at, folder)
        for name in [*names, *files]:
            path = os.path.normpath(os.path.join(inside, name))
            full = Path(at, name)
            if path == ".git":
                continue
            real_folder = full.is_dir() and not full.is_symlink()
            if path in links or (path in parents and real_folder) or (path in wanted and path not in links and not real_folder):
                continue
            if real_folder:
                shutil.rmtree(full)
            else:
                full.unlink()
        names[:] = [name for name in names if os.path.normpath(os.path.join(inside, name)) in parents]
