"""Writes several files as one: all of them or none, also when the process is killed in between.

The contents before and after are stored first, then temporary files are made beside the targets, then each is renamed onto its
target. A journal that is not `done` is rolled back by the next command.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.schema import write_atomically
from trainflash.writeback.content import Change, Content, on_disk

WRITING, DONE, BACK = "writing", "done", "rolled back"


def write(folder: Path, project: Path, changes: Sequence[Change]) -> None:
    """Make `changes` in the project, with the journal in `folder`; they stand once `finish` was called.

    Raises `UsageError`, with nothing changed, when one of them fails.
    """
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    entries = [_store(folder, project, number, change) for number, change in enumerate(changes)]
    state = {"project": str(project), "state": WRITING, "entries": entries, "folders": _missing_folders(project, changes)}
    _save(folder, state)
    try:
        for path in state["folders"]:
            (project / path).mkdir()
            _own_like(project / path, (project / path).parent)
        for entry, change in zip(entries, changes, strict=True):
            if change.after:
                _prepare(project / entry["temporary"], project / change.path, change.before, change.after)
        for change in changes:
            if on_disk(project, change.path) != change.before:
                raise UsageError(f"{change.path} was edited this moment", "run the command again")
        for entry, change in zip(entries, changes, strict=True):
            _put(project, change.path, entry["temporary"] if change.after else None)
    except (OSError, UsageError, KeyboardInterrupt) as bad:
        roll_back(folder)
        if not isinstance(bad, OSError):
            raise
        raise UsageError(f"{bad.filename}: {bad.strerror}; nothing was changed", "free the file and run the command again") from None


def finish(folder: Path) -> None:
    """From here on, what was written stands."""
    _save(folder, {**_load(folder), "state": DONE})


def roll_back(folder: Path) -> tuple[str, ...]:
    """Restore what was there before, except in files that are neither as before nor as written; returns those."""
    state = _load(folder)
    project = Path(state["project"])
    left = []
    for entry in state["entries"]:
        with contextlib.suppress(FileNotFoundError):
            (project / entry["temporary"]).unlink()
        before, after = _content(folder, entry, "before"), _content(folder, entry, "after")
        now = on_disk(project, entry["path"])
        if now == after != before:
            try:
                _restore(project, entry, before)
            except OSError as bad:
                mend = f"free the file and run again; its old content is in {folder}"
                raise UsageError(f"{entry['path']}: {bad.strerror}", mend) from None
        elif now != before:
            left.append(entry["path"])
    for path in reversed(state["folders"]):
        with contextlib.suppress(OSError):  # the owner put something there
            (project / path).rmdir()
    _save(folder, {**state, "state": BACK})
    return tuple(left)


def state_of(folder: Path) -> str:
    """Whether the write stands (DONE), was taken back (BACK) or was cut off (WRITING); empty before it began."""
    return _load(folder)["state"] if (folder / "journal.json").exists() else ""


def reopen(folder: Path) -> None:
    """Mark a finished write as unfinished, so that a kill during its undoing is completed by the next command."""
    _save(folder, {**_load(folder), "state": WRITING})


def edited(folder: Path) -> tuple[str, ...]:
    """Files that are not as the write left them."""
    state = _load(folder)
    project = Path(state["project"])
    return tuple(entry["path"] for entry in state["entries"] if on_disk(project, entry["path"]) != _content(folder, entry, "after"))


def _store(folder: Path, project: Path, number: int, change: Change) -> dict:
    """Keep both contents in the journal's folder, and the facts that bring the old one back exactly."""
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    parent = os.path.dirname(change.path)
    entry: dict = {"path": change.path, "temporary": os.path.join(parent, f".trainflash-{mark}-{number}")}
    for side in ("before", "after"):
        content: Content | None = getattr(change, side)
        entry[side] = content and content.kind
        if content:
            _write_synced(folder / f"{number}.{side}", content.data)
    entry["number"] = number
    if change.before:
        facts = (project / change.path).lstat()
        entry["facts"] = [stat.S_IMODE(facts.st_mode), facts.st_mtime_ns, facts.st_uid, facts.st_gid]
    return entry


def _content(folder: Path, entry: dict, side: str) -> Content | None:
    return Content(entry[side], (folder / f"{entry['number']}.{side}").read_bytes()) if entry[side] else None


def _prepare(made: Path, target: Path, before: Content | None, after: Content) -> None:
    """The new content beside its target, with the permissions, owner and attributes of the file that it will replace."""
    made.unlink(missing_ok=True)
    if after.kind == "120000":
        os.symlink(after.data, os.fsencode(made))
        _own_like(made, target.parent)
        return
    _write_synced(made, after.data)
    if before and before.kind != "120000":
        shutil.copystat(target, made)
        _own_like(made, target)
        os.utime(made)
    else:
        _own_like(made, target.parent)
    mode = stat.S_IMODE(made.stat().st_mode)
    os.chmod(made, mode | (mode & 0o444) >> 2 if after.kind == "100755" else mode & ~0o111)


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _own_like(made: Path, model: Path) -> None:
    if os.geteuid() == 0:
        facts = model.lstat()
        os.chown(made, facts.st_uid, facts.st_gid, follow_symlinks=False)


def _put(project: Path, path: str, temporary: str | None) -> None:
    if temporary:
        os.replace(project / temporary, project / path)
    else:
        (project / path).unlink()


def _restore(project: Path, entry: dict, before: Content | None) -> None:
    if before is None:
        (project / entry["path"]).unlink()
        return
    mode, mtime_ns, uid, gid = entry["facts"]
    made = project / entry["temporary"]
    made.parent.mkdir(parents=True, exist_ok=True)
    if before.kind == "120000":
        os.symlink(before.data, os.fsencode(made))
    else:
        _write_synced(made, before.data)
        if (project / entry["path"]).exists():
            shutil.copystat(project / entry["path"], made)
        os.chmod(made, mode)
    if os.geteuid() == 0:
        os.chown(made, uid, gid, follow_symlinks=False)
    os.utime(made, ns=(mtime_ns, mtime_ns), follow_symlinks=False)
    os.replace(made, project / entry["path"])


def _missing_folders(project: Path, changes: Sequence[Change]) -> list[str]:
    """Folders to make, outermost first."""
    wanted = {str(parent) for change in changes if change.after for parent in Path(change.path).parents}
    return sorted((path for path in wanted if not (project / path).is_dir()), key=lambda path: path.count("/"))


def _save(folder: Path, state: dict) -> None:
    write_atomically(folder / "journal.json", json.dumps(state))


def _load(folder: Path) -> dict:
    try:
        return json.loads((folder / "journal.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as bad:
        raise UsageError(f"{folder}/journal.json: {bad}", "the record is damaged; the contents before lie beside it") from None
