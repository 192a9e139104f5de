"""What the original project looked like when the sandbox was made, by stat alone, and what is different now."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError

MANIFEST_FILES = 300_000  # beyond these, folders are watched by their own time only: names that come and go, not edits
# of git's own folder: what it points to, refs and settings; not its objects and logs, nor the index, whose entries have a digest instead
_GIT_WATCHED = ("HEAD", "config", "config.worktree", "packed-refs", "refs", "hooks", "info")
_GIT_OURS = "refs/trainflash"
Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class Manifest:
    """`files`: path → (size, mtime in ns, mode, ctime in ns); `unlisted`: folders that were not looked into → mtime in ns.

    `index` is a digest of the entries of git's index. A folder has no times, as every file made in it changes them.
    """

    files: dict[str, Stamp]
    unlisted: dict[str, int]
    index: str = ""


def scan(root: Path, limit: int = MANIFEST_FILES, *, git_dirs: Sequence[str] = (), index: str = "") -> Manifest:
    """The manifest of everything beneath `root`, ignored files included, and of what counts in the folders of git."""
    files: dict[str, Stamp] = {}
    unlisted: dict[str, int] = {}
    for path, facts in _walk(root, git_dirs, lambda path, facts: _too_many(path, facts, files, unlisted, limit)):
        files[path] = _stamp(facts)
    return Manifest(files, unlisted, index)


def _too_many(path: str, facts: os.stat_result, files: dict[str, Stamp], unlisted: dict[str, int], limit: int) -> bool:
    if len(files) < limit:
        return False
    unlisted[path] = facts.st_mtime_ns
    return True


def changes(manifest: Manifest, root: Path, *, git_dirs: Sequence[str] = (), index: str = "") -> tuple[str, ...]:
    """What differs now, one line each: `changed PATH`, `removed PATH`, `new PATH`, `mode of PATH` or `touched PATH`.

    Touched: owner, attributes or number of links differ, or the content does and its time was put back.
    """
    found = [] if index == manifest.index else ["changed entries of git's index"]
    gone = set(manifest.files)
    touched: set[str] = set()

    def skip(path: str, facts: os.stat_result) -> bool:
        if path in manifest.unlisted and facts.st_mtime_ns != manifest.unlisted[path]:
            touched.add(path)
        return path in manifest.unlisted

    for path, facts in _walk(root, git_dirs, skip):
        gone.discard(path)
        then, now = manifest.files.get(path), _stamp(facts)
        if then is None:
            found.append(f"new {path}")
        elif then[:2] != now[:2] or stat.S_IFMT(then[2]) != stat.S_IFMT(now[2]):
            found.append(f"changed {path}")
        elif then[2] != now[2]:
            found.append(f"mode of {path}")
        elif then != now[: len(then)]:
            found.append(f"touched {path}")
    found += [f"removed {path}" for path in gone] + [f"changed {path}/" for path in touched]
    return tuple(sorted(found, key=lambda line: line.split(" ", 1)[1]))


def write(manifest: Manifest, path: Path) -> None:
    """Store a manifest as JSON (paths that are no text are kept by surrogates)."""
    path.write_text(json.dumps({"files": manifest.files, "unlisted": manifest.unlisted, "index": manifest.index}), encoding="ascii")


def read(path: Path) -> Manifest:
    """The stored manifest. Raises `UsageError` when it is missing or broken."""
    try:
        plain = json.loads(path.read_text(encoding="ascii"))
        return Manifest({name: tuple(facts) for name, facts in plain["files"].items()}, plain["unlisted"], plain["index"])
    except (OSError, ValueError, KeyError, TypeError) as bad:
        raise UsageError(f"{path}: {bad}", "the sandbox is damaged: trainflash sandbox discard, then create") from None


def _stamp(facts: os.stat_result) -> Stamp:
    if stat.S_ISDIR(facts.st_mode):
        return (0, 0, facts.st_mode, 0)
    return (facts.st_size, facts.st_mtime_ns, facts.st_mode, facts.st_ctime_ns)


def _walk(root: Path, git_dirs: Sequence[str], skip: Callable[[str, os.stat_result], bool]) -> Iterator[tuple[str, os.stat_result]]:
    """Every file and folder beneath `root` and what is watched of `git_dirs`; folders for which `skip(path, facts)` holds are passed by."""
    yield from _git_state(root, git_dirs)
    pending = [""]
    while pending:
        inside = pending.pop()
        try:
            with os.scandir(os.path.join(root, inside)) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(inside, entry.name)
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if path == ".git" and stat.S_ISDIR(facts.st_mode):
                continue
            if not stat.S_ISDIR(facts.st_mode):
                yield path, facts
            elif not skip(path, facts):
                yield path, facts
                pending.append(path)


def _git_state(root: Path, git_dirs: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The watched files of git's folders: relative to `root` where they lie in it, else absolute."""
    for folder in dict.fromkeys(git_dirs):
        shown = os.path.relpath(folder, root) if Path(folder).is_relative_to(root) else folder
        pending = [name for name in _GIT_WATCHED if os.path.lexists(os.path.join(folder, name))]
        while pending:
            name = pending.pop()
            path = os.path.join(folder, name)
            try:
                facts = os.lstat(path)
                if not stat.S_ISDIR(facts.st_mode):
                    yield os.path.join(shown, name), facts
                elif name != _GIT_OURS:
                    pending += [os.path.join(name, entry) for entry in os.listdir(path)]
            except OSError:
                continue
