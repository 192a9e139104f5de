"""Taking out what was installed: exactly what `install` wrote, and nothing that was edited since."""

from __future__ import annotations

from pathlib import Path

from trainflash.install import blocks, json_edits, places, record
from trainflash.install.agents import AGENTS, Addition
from trainflash.install.installing import Change, Report
from trainflash.install.json_edits import Span, Unfit
from trainflash.install.record import Settings, digest

_EDITED = "edited since; what is trainflash's in it can be removed by hand"


def uninstall(project: Path, *, dry_run: bool = False) -> Report:
    """Take out what `install` wrote. Files edited since are kept and reported. Raises `UsageError` as `install` does."""
    root = places.root_of(project)
    found = record.read(root)
    changes: list[Change] = []
    after: dict[Path, bytes | None] = {}  # None: remove
    for relative in sorted({agent.rules for agent in AGENTS.values() if not agent.header} | set(found.blocks)):
        _block(root, relative, existed=found.blocks.get(relative, False), changes=changes, after=after)
    for relative, settings in found.settings.items():
        _settings(root, relative, settings, changes, after)
    for relative, wrote in found.files.items():
        path = places.inside(root, relative)
        if path.is_file():
            ours = digest(path.read_bytes()) == wrote
            changes.append(Change("remove", relative) if ours else Change("keep", relative, _EDITED))
            if ours:
                after[path] = None
    note = root / record.FILE
    folders = [places.inside(root, relative, folder=True) for relative in sorted(found.folders, key=len, reverse=True)]
    if not dry_run and (after or note.exists()):
        places.require_writable(root, [note, *after])
        _carry_out(after, note, folders)
    return Report(tuple(sorted(changes, key=lambda change: change.path)))


def _carry_out(after: dict[Path, bytes | None], note: Path, folders: list[Path]) -> None:
    for path, content in after.items():
        if content is None:
            path.unlink(missing_ok=True)
        else:
            places.write(path, content)
    note.unlink(missing_ok=True)
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _block(root: Path, relative: str, *, existed: bool, changes: list[Change], after: dict[Path, bytes | None]) -> None:
    path = places.inside(root, relative)
    if path in after or not path.is_file():
        return
    left = blocks.take(path.read_bytes(), relative)
    if left is None:
        return
    gone = not left and not existed
    changes.append(Change("remove" if gone else "restore", relative))
    after[path] = None if gone else left


def _settings(root: Path, relative: str, settings: Settings, changes: list[Change], after: dict[Path, bytes | None]) -> None:
    path = places.inside(root, relative)
    if not path.is_file():
        return
    content = path.read_bytes()
    if settings.spans is not None and digest(content) == settings.after:
        left = json_edits.take(content.decode("utf-8"), [Span(*span) for span in settings.spans])
        gone = settings.created and not left
        changes.append(Change("remove" if gone else "restore", relative))
        after[path] = None if gone else left.encode()
        return
    try:
        text = content.decode("utf-8")
        left = json_edits.without(text, [Addition(tuple(keys), value) for keys, value in settings.additions])
        changed = json_edits.parse(left) != json_edits.parse(text)
    except (Unfit, UnicodeDecodeError):
        changes.append(Change("keep", relative, _EDITED))
        return
    if changed:
        gone = settings.created and not json_edits.parse(left)
        changes.append(Change("remove" if gone else "update", relative))
        after[path] = None if gone else left.encode()
