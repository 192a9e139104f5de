"""A commit of a work tree exactly as it lies on disk.

Bytes are stored without filters and line-ending conversion, the owner's index is only read, and the commit is built in an index of
its own. Large files stay out of the commit: a run reads them where they are.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.sandbox.git import Git, TreeEntry, common_dir

LARGE_FILE_BYTES = 64 << 20  # a file above this is data or weights, not source; it would be stored once and copied twice
UNTRACKED_BYTES = 1 << 30  # with more untracked bytes or files than these, only source files of the untracked are taken
UNTRACKED_FILES = 50_000
_SOURCE = frozenset((
    ".py", ".pyi", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".sh", ".yaml", ".yml", ".json", ".toml",
    ".cfg", ".ini", ".txt", ".md", ".rst", ".gin", ".jinja", ".ipynb",
))  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """What `take` stored: the tree, its files, and the paths that are neither ignored nor in it."""

    tree: str
    files: dict[str, TreeEntry]
    left_out: tuple[str, ...]


def take(repository: Git, scratch: Path) -> Snapshot:
    """Store all files that git does not ignore as a tree. Files in `scratch` are temporary.

    Raises `UsageError` where git or the file system refuses, or files keep vanishing while they are read.
    """
    for _ in range(3):
        files, gitlinks, left_out, tracked = _listing(repository)
        try:
            oids = _store(repository, list(files), files, tracked, scratch)
        except UsageError:
            if all(os.path.lexists(os.path.join(repository.work_tree, path)) for path in files):
                raise
            continue
        entries = {path: TreeEntry(git_mode(facts), oids[path], facts.st_size) for path, facts in files.items()}
        entries.update({path: TreeEntry("160000", oid, 0) for path, oid in gitlinks.items()})
        return Snapshot(write_tree(repository, entries, scratch), entries, tuple(sorted(left_out)))
    raise UsageError(f"{repository.work_tree}: files vanish while they are read", "stop what writes there and try again")


def write_tree(repository: Git, entries: Mapping[str, TreeEntry], scratch: Path) -> str:
    """The tree of `entries`, built in a temporary index."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="index-") as folder:
        own = repository.with_index(Path(folder, "index"))
        lines = (f"{entry.mode} {entry.oid}\t".encode() + os.fsencode(path) + b"\0" for path, entry in entries.items())
        own.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
        return own.text("write-tree")


def commit(repository: Git, tree: str, parents: Iterable[str], message: str, ref: str) -> str:
    """A commit of `tree`, kept from git's garbage collection by `ref` followed by its name."""
    arguments = [part for parent in parents for part in ("-p", parent)]
    made = repository.text("commit-tree", tree, *arguments, stdin=message.encode("utf-8", "surrogateescape"))
    repository.run("update-ref", "--no-deref", f"{ref}/{made}", made)
    return made


def _listing(repository: Git) -> tuple[dict[str, os.stat_result], dict[str, str], list[str], frozenset[str]]:
    """Regular files and links to store with their stat, submodules with their commit, paths that stay out, objects of the index."""
    root = repository.work_tree
    tracked: dict[str, str] = {}
    gitlinks = {}
    untracked: list[str] = []
    for line in repository.run("ls-files", "-z", "-t", "-s", "-o", "--exclude-standard").split(b"\0")[:-1]:
        if line.startswith(b"? "):
            untracked.append(os.fsdecode(line[2:]))
            continue
        facts, name = line.split(b"\t", 1)
        _, mode, oid, _ = facts.decode().split()
        tracked[os.fsdecode(name)] = oid
        if mode == "160000" and os.path.isdir(os.path.join(root, os.fsdecode(name))):
            gitlinks[os.fsdecode(name)] = oid
    files: dict[str, os.stat_result] = {}
    left_out = [path.rstrip("/") for path in untracked if path.endswith("/")]  # repositories inside this one
    linked: dict[str, bool] = {"": False}
    for path in [*(set(tracked) - set(gitlinks)), *untracked]:
        full = os.path.join(root, path)
        try:
            facts = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            continue
        readable = stat.S_ISLNK(facts.st_mode) or (stat.S_ISREG(facts.st_mode) and os.access(full, os.R_OK))
        if stat.S_ISDIR(facts.st_mode) or _beneath_link(root, os.path.dirname(path), linked):
            continue
        if readable and facts.st_size <= LARGE_FILE_BYTES:
            files[path] = facts
        else:
            left_out.append(path)
    found = [path for path in untracked if path in files]
    if len(found) > UNTRACKED_FILES or sum(files[path].st_size for path in found) > UNTRACKED_BYTES:
        for path in found:
            if os.path.splitext(path)[1].lower() not in _SOURCE:
                left_out.append(path)
                del files[path]
    present = frozenset(tracked.values()) if _complete(repository) else frozenset()
    return dict(sorted(files.items())), gitlinks, left_out, present


def _complete(repository: Git) -> bool:
    """Whether every object of the index is there: a partial clone may lack some."""
    try:  # git reads it from this file alone
        return b"partialclone" not in (common_dir(repository) / "config").read_bytes().lower()
    except FileNotFoundError:
        return True


def _beneath_link(root: str, folder: str, known: dict[str, bool]) -> bool:
    """Whether a folder of a tracked path became a symbolic link (git then counts the path as deleted)."""
    if folder not in known:
        known[folder] = os.path.islink(os.path.join(root, folder)) or _beneath_link(root, os.path.dirname(folder), known)
    return known[folder]


def git_mode(facts: os.stat_result) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return "120000"
    return "100755" if facts.st_mode & stat.S_IXUSR else "100644"


def _store(repository: Git, paths: list[str], files: Mapping[str, os.stat_result], known: Collection[str], scratch: Path) -> dict[str, str]:
    """The object of each path, written unless it is one of `known`. The target of a link is stored by way of a file in `scratch`."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="links-") as folder:
        lines = []
        for number, path in enumerate(paths):
            full = os.fsencode(os.path.join(repository.work_tree, path))
            if stat.S_ISLNK(files[path].st_mode):
                target = os.readlink(full)
                full = os.fsencode(os.path.join(folder, str(number)))
                Path(os.fsdecode(full)).write_bytes(target)
            lines.append(_quoted(full))
        oids = _hash(repository, lines)
        new = [number for number, oid in enumerate(oids) if oid not in known]
        for number, oid in zip(new, _hash(repository, [lines[number] for number in new], "-w"), strict=True):
            oids[number] = oid  # what was written, should the file have changed in between
    return dict(zip(paths, oids, strict=True))


def _hash(repository: Git, lines: list[bytes], *options: str) -> list[str]:
    if not lines:
        return []
    return repository.run("hash-object", *options, "--no-filters", "--stdin-paths", stdin=b"".join(lines)).decode().split()


def _quoted(path: bytes) -> bytes:
    """One line for `--stdin-paths`, which unquotes a line that begins with a double quote."""
    if b"\n" not in path and b"\r" not in path:
        return path + b"\n"
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"\n'
