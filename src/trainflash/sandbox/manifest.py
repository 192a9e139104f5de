"""What the original project looked like when the sandbox was made, by stat alone, and what is different now."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError

MANIFEST_FILES = 300_000  # beyond these, folders are watched by their own time only: names that come and go, not edits
_GIT_FILES = (".git/HEAD", ".git/config")  # the rest of .git is git's own affair


@dataclass(frozen=True)
class Manifest:
    """`files`: path → (size, mtime in ns, mode); `unlisted`: folders that were not looked into → mtime in ns."""

    files: dict[str, tuple[int, int, int]]
    unlisted: dict[str, int]


def scan(root: Path, limit: int = MANIFEST_FILES) -> Manifest:
    """The manifest of everything beneath `root`, ignored files included."""
    files: dict[str, tuple[int, int, int]] = {}
    unlisted: dict[str, int] = {}
    for path, facts in _walk(root, lambda path, facts: _too_many(path, facts, files, unlisted, limit)):
        files[path] = _stamp(facts)
    return Manifest(files, unlisted)


def _too_many(path: str, facts: os.stat_result, files: dict[str, tuple[int, int, int]], unlisted: dict[str, int], limit: int) -> bool:
    if len(files) < limit:
        return False
    unlisted[path] = facts.st_mtime_ns
    return True


def changes(manifest: Manifest, root: Path) -> tuple[str, ...]:
    """What differs now, one line each: `changed PATH`, `removed PATH`, `new PATH` or `mode of PATH`."""
    found = []
    gone = set(manifest.files)
    touched: set[str] = set()

    def skip(path: str, facts: os.stat_result) -> bool:
        if path in manifest.unlisted and facts.st_mtime_ns != manifest.unlisted[path]:
            touched.add(path)
        return path in manifest.unlisted

    for path, facts in _walk(root, skip):
        gone.discard(path)
        then, now = manifest.files.get(path), _stamp(facts)
        if then is None:
            found.append(f"new {path}")
        elif then[:2] != now[:2] or stat.S_IFMT(then[2]) != stat.S_IFMT(now[2]):
            found.append(f"changed {path}")
        elif then[2] != now[2]:
            found.append(f"mode of {path}")
    found += [f"removed {path}" for path in gone] + [f"changed {path}/" for path in touched]
    return tuple(sorted(found, key=lambda line: line.split(" ", 1)[1]))


def write(manifest: Manifest, path: Path) -> None:
    """Store a manifest as JSON (paths that are no text are kept by surrogates)."""
    path.write_text(json.dumps({"files": manifest.files, "unlisted": manifest.unlisted}), encoding="ascii")


def read(path: Path) -> Manifest:
    """The stored manifest. Raises `UsageError` when it is missing or broken."""
    try:
        plain = json.loads(path.read_text(encoding="ascii"))
        return Manifest({name: tuple(facts) for name, facts in plain["files"].items()}, plain["unlisted"])
    except (OSError, ValueError, KeyError, TypeError) as bad:
        raise UsageError(f"{path}: {bad}", "the sandbox is damaged: trainflash sandbox discard, then create") from None


def _stamp(facts: os.stat_result) -> tuple[int, int, int]:
    folder = stat.S_ISDIR(facts.st_mode)
    return (0 if folder else facts.st_size, 0 if folder else facts.st_mtime_ns, facts.st_mode)


def _walk(root: Path, skip: Callable[[str, os.stat_result], bool]) -> Iterator[tuple[str, os.stat_result]]:
    """Every file and folder beneath `root` in a fixed order; folders for which `skip(path, facts)` holds are not looked into."""
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
                yield from _git_state(root)
                continue
            if not stat.S_ISDIR(facts.st_mode):
                yield path, facts
            elif not skip(path, facts):
                yield path, facts
                pending.append(path)


def _git_state(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    for path in _GIT_FILES:
        try:
            yield path, os.lstat(os.path.join(root, path))
        except OSError:
            continue
