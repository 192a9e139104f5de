"""A room: a throw-away copy of the candidate's checkout, without `.git`, for somebody who edits.

In a mount view the copy lies on the project's original path, above what git ignores there, which is read and never written; the folder of
the sandbox and the repository are not to be seen. Landlock keeps writes in the copy, but not reads. Where neither holds there is no room.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.schema import Protection, Sandbox
from trainflash.view import copies, layers, listing, opening, outside

LARGEST_FILE = 4_000_000  # bytes of a file that is read for a change: more is no source


@dataclass(frozen=True)
class Change:
    """One file that was made, changed or taken away. `odd` says what is there where no text of a file can be given.

    It is `link`, `special` (neither a file nor a link), `large` or `data` (a file that git ignores, and that was there before).
    """

    path: str  # relative to the repository's root
    before: bytes | None = None  # None: a new file
    after: bytes | None = None  # None: taken away
    odd: str = ""


@dataclass(frozen=True)
class Room:
    """An opened room; a `View` for whoever starts a program in it. Paths are those that the program sees, but for `copy` and `layer`."""

    protection: Protection
    project: str
    cwd: str
    env: dict[str, str]
    task: str  # folder with the files of the task
    layer: str
    copy: str  # of the repository's root
    spec: str
    sandbox: Sandbox = dataclasses.field(repr=False)
    stamps: dict[str, tuple[int, int]] = dataclasses.field(repr=False)
    bytes_at_first: int = 0

    def argv(self, argv: Sequence[str]) -> list[str]:
        """As of `View.argv`."""
        return opening.entered(self.spec, argv)

    def outputs(self) -> dict[str, int]:
        """Nothing of a room is a program's output."""
        return {}

    def bytes_written(self) -> int:
        """Bytes on disk of what was written in the room, in HOME and in folders for temporary files."""
        return max(0, _bytes(self.layer) - self.bytes_at_first)

    def changes(self) -> tuple[Change, ...]:
        """What is otherwise than at first, by path; new files that git ignores do not count. To be asked when nobody writes any more."""
        return changes_in(self.sandbox, Path(self.copy), self.stamps)

    def close(self) -> None:
        """Remove the room. Safe to repeat."""
        if os.path.isdir(self.layer):
            opening.remove(self.layer)


def copied(sandbox: Sandbox, folder: Path) -> dict[str, tuple[int, int]]:
    """Make `folder` a copy of `worktree/` without `.git`; returns what `changes_in` compares it with."""
    _plain_copy(sandbox, folder)
    return copies.stamps(folder)


def changes_in(sandbox: Sandbox, folder: Path, before: Mapping[str, tuple[int, int]]) -> tuple[Change, ...]:
    """What in a copy is otherwise than it was; new files that git ignores do not count."""
    fresh = listing.untracked(sandbox, str(folder))
    found = []
    for path in copies.written(folder, dict(before)):
        if path.split(os.sep)[0] == ".git":
            continue
        theirs = path not in before and os.path.lexists(os.path.join(sandbox.repository, path))
        if path in before or path in fresh:
            found.append(_change(folder / path, path, _content(Path(sandbox.worktree, path)) if path in before else None))
        elif theirs and not any(layers.beneath(known, path) for known in before):  # else its files are told one by one
            found.append(Change(path, odd="data"))
    return tuple(found)


def _change(now: Path, path: str, before: bytes | None) -> Change:
    try:
        facts = os.lstat(now)
    except OSError:
        return Change(path, before)
    if stat.S_ISCHR(facts.st_mode):  # what an overlay puts where something was taken away
        return Change(path, before)
    if not stat.S_ISREG(facts.st_mode):
        return Change(path, before, odd="link" if stat.S_ISLNK(facts.st_mode) else "special")
    if facts.st_size > LARGEST_FILE:
        return Change(path, before, odd="large")
    return Change(path, before, now.read_bytes())


def open_room(sandbox: Sandbox, task: Mapping[str, str], shared: Sequence[str] = ()) -> Room:
    """A room with the state of `worktree/`. `task`: files, name to text, to be read in it; `shared`: what stays writable for good.

    Raises `UsageError` where nothing here keeps writes away from the project, and for a full disk.
    """
    strategy = opening.strategy_of(sandbox)
    if strategy.protection not in {"mount", "landlock"}:
        raise UsageError(
            f"nothing on this machine keeps a program from writing into the project: {strategy.reason}",
            "let an assistant answer `trainflash optimize brief` by hand, and give its diff to `optimize try --patch`",
        )
    layer = Path(strategy.place, uuid.uuid4().hex[:12])
    try:
        layer.mkdir(parents=True, mode=0o700)
        return _opened(sandbox, strategy.protection, layer, task, [path for path in shared if os.path.exists(path)])
    except BaseException as bad:
        if layer.is_dir():
            opening.remove(str(layer))
        if isinstance(bad, OSError):
            raise UsageError(
                f"{bad.filename}: {bad.strerror}", "free that place, or put the sandbox elsewhere: trainflash sandbox create --base DIR"
            ) from None
        raise


def _opened(sandbox: Sandbox, protection: Protection, layer: Path, task: Mapping[str, str], shared: list[str]) -> Room:
    copy, told, temporary = layer / "copy", layer / "task", layer / "tmp"
    for folder in (told, temporary):
        folder.mkdir()
    for name, text in task.items():
        (told / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    if protection == "mount":
        _plain_copy(sandbox, copy)
        layers.hide(copy / ".git")
        spec = _mounted(sandbox, layer, copy, told, shared)
        project, seen, environment = sandbox.project, sandbox.directory, {}
    else:
        copies.make(sandbox, "candidate", copy)
        shutil.rmtree(copy / ".git", ignore_errors=True)
        project, seen, environment = os.path.normpath(copy / sandbox.prefix), str(told), {"TMPDIR": str(temporary)}
        allowed = [*shared, "/tmp", "/var/tmp"]
        writable = [str(copy), str(temporary), "/proc", *opening.devices(), *(path for path in allowed if not opening.holds(path, sandbox))]
        spec = {"mode": protection, "writable": writable}
    start = opening.start_of(project, (str(copy / sandbox.prefix),), ".")
    written = opening.write_spec(layer, {**spec, "cwd": start, "notes": False})
    outside_of_it = start if os.path.isdir(start) else "/"
    return Room(
        protection=protection,
        project=project,
        cwd=outside_of_it,
        env={**opening.environment_of(layer), **environment},
        task=seen,
        layer=str(layer),
        copy=str(copy),
        spec=written,
        sandbox=sandbox,
        stamps=copies.stamps(copy),
        bytes_at_first=_bytes(str(layer)),
    )


def _plain_copy(sandbox: Sandbox, folder: Path) -> None:
    top = sandbox.worktree
    shutil.copytree(top, folder, symlinks=True, ignore=lambda at, _: [".git"] if at == top else [])


def _mounted(sandbox: Sandbox, layer: Path, copy: Path, told: Path, shared: list[str]) -> dict[str, object]:
    git_dir = listing.git_dir(sandbox)
    overlays = []
    for overlay in layers.build(sandbox, "candidate", layer, ()):
        if overlay.at == git_dir:
            continue
        if overlay.at == sandbox.repository:  # edited in place: what is written needs no reading of an overlay's own marks
            lowers = tuple(lower for lower in overlay.lowers if lower != sandbox.worktree)
            overlay = dataclasses.replace(overlay, lowers=lowers, upper=str(copy))
        overlays.append(overlay)
    over, _ = outside.covers(layer, layer)
    hidden = {sandbox.directory: str(told)}
    if git_dir and not layers.beneath(git_dir, sandbox.repository):
        (layer / "none").mkdir()
        hidden[git_dir] = str(layer / "none")
    flat = [inner for overlay in overlays for inner in (overlay, *overlay.instead)]
    reached = [*shared, *(overlay.plain for overlay in flat if overlay.variables)]
    for path in reached:
        if layers.beneath(path, sandbox.directory):  # what lies in the hidden folder needs a place in what stands there instead
            (told / os.path.relpath(path, sandbox.directory)).mkdir(parents=True, exist_ok=True)
    return {
        "mode": "mount",
        "overlays": [dataclasses.asdict(overlay) for overlay in overlays],
        "shared": reached,
        "sockets": layers.sockets(),
        "over": {**over, **hidden},
    }


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except OSError:
        return None


def _bytes(folder: str) -> int:
    total = 0
    for at, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(at, name)).st_blocks * 512
            except OSError:
                continue  # gone meanwhile
    return total
