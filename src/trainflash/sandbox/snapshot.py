"""A commit of a work tree exactly as it lies on disk, and a checkout exactly as it was committed.

Bytes are stored and written without filters and line-ending conversion, the owner's index is only read, and the commit is built
in an index of its own. Large files stay out of the commit: a run reads them where they are.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.sandbox.git import Git, TreeEntry

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
        files, gitlinks, left_out = _listing(repository)
        try:
            oids = _store(repository, list(files), files, scratch)
        except UsageError:
            if all(os.path.lexists(os.path.join(repository.work_tree, path)) for path in files):
                raise
            continue
        entries = {path: TreeEntry(_git_mode(facts), oids[path], facts.st_size) for path, facts in files.items()}
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
            origin = origins.get(path)
            if origin and origin.oid == entry.oid:
                if entry.mode != "120000":
                    os.chmod(folder / path, origin.mode & 0o777 | 0o600)
                os.utime(folder / path, ns=(origin.mtime_ns, origin.mtime_ns), follow_symlinks=False)


def _listing(repository: Git) -> tuple[dict[str, os.stat_result], dict[str, str], list[str]]:
    """Regular files and links to store with their stat, submodules with their commit, and paths that stay out."""
    root = repository.work_tree
    tracked: dict[str, str] = {}
    gitlinks = {}
    for line in repository.run("ls-files", "-z", "-s").split(b"\0")[:-1]:
        facts, name = line.split(b"\t", 1)
        mode, oid, _ = facts.decode().split()
        tracked[os.fsdecode(name)] = oid
        if mode == "160000" and os.path.isdir(os.path.join(root, os.fsdecode(name))):
            gitlinks[os.fsdecode(name)] = oid
    untracked = [os.fsdecode(name) for name in repository.run("ls-files", "-z", "-o", "--exclude-standard").split(b"\0")[:-1]]
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
    return dict(sorted(files.items())), gitlinks, left_out


def _beneath_link(root: str, folder: str, known: dict[str, bool]) -> bool:
    """Whether a folder of a tracked path became a symbolic link (git then counts the path as deleted)."""
    if folder not in known:
        known[folder] = os.path.islink(os.path.join(root, folder)) or _beneath_link(root, os.path.dirname(folder), known)
    return known[folder]


def _git_mode(facts: os.stat_result) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return "120000"
    return "100755" if facts.st_mode & stat.S_IXUSR else "100644"


def _store(repository: Git, paths: list[str], files: Mapping[str, os.stat_result], scratch: Path) -> dict[str, str]:
    """The object of each path, written where git lacks it. The target of a link is stored by way of a file in `scratch`."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="links-") as folder:
        lines = []
        for number, path in enumerate(paths):
            full = os.fsencode(os.path.join(repository.work_tree, path))
            if stat.S_ISLNK(files[path].st_mode):
                target = os.readlink(full)
                full = os.fsencode(os.path.join(folder, str(number)))
                Path(os.fsdecode(full)).write_bytes(target)
            lines.append(_quoted(full))
        out = repository.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=b"".join(lines))
    return dict(zip(paths, out.decode().split(), strict=True))


def _quoted(path: bytes) -> bytes:
    """One line for `--stdin-paths`, which unquotes a line that begins with a double quote."""
    if b"\n" not in path and b"\r" not in path:
        return path + b"\n"
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"\n'


def _holds(target: Path, entry: TreeEntry, algorithm: str) -> bool:
    """Whether `target` has the content and mode of `entry` already."""
    try:
        facts = target.lstat()
    except OSError:
        return False
    if _git_mode(facts) != entry.mode or facts.st_size != entry.size or stat.S_ISDIR(facts.st_mode):
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
