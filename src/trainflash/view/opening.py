"""Opens the view of one run, by the protection that holds here."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.schema import Protection, Sandbox, Side
from trainflash.view import copies, layers, outside, trial

_ENTER = str(Path(__file__).with_name("enter.py"))
# copied files have other inodes and change times than the owner's index knows; their sizes and times of change are equal
_GIT_CHECKS_LESS = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.checkStat",
    "GIT_CONFIG_VALUE_0": "minimal",
    "GIT_CONFIG_KEY_1": "core.trustctime",
    "GIT_CONFIG_VALUE_1": "false",
}
_DISKS = ("/dev/block", "/dev/disk", "/dev/mapper")
_CACHES = (".cache", ".triton", ".nv", ".config/matplotlib")


@dataclass(frozen=True)
class View:
    """One run's view. `project` is the project's folder as the program sees it; `cwd` is where to start it; `env` is to be added.

    Start `argv(command)` from a thread that outlives the program: the kernel kills the program when that thread ends.
    """

    protection: Protection
    project: str
    cwd: str
    env: dict[str, str]
    layer: str  # folder of this view's layers, "" in place
    spec: str
    uppers: tuple[tuple[str, str], ...] = ()  # (folder with what was written, path in the view)
    copied: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict, repr=False)
    moved: tuple[str, str] | None = None  # the original's root and what stands in for it, where that lies at another path

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command that enters the view and becomes `argv`; 125: could not enter, 126 and 127: no such program."""
        led = argv if self.moved is None else [copies.led(word, *self.moved) for word in argv]
        return entered(self.spec, led)

    def written(self) -> tuple[str, ...]:
        """Paths, as the program saw them, that it made, changed or deleted, not counting folders and what is shared; () in place."""
        if self.protection in ("landlock", "manifest"):
            folder = os.path.join(self.layer, "project")
            return tuple(os.path.join(folder, path) for path in copies.written(Path(folder), self.copied))
        found = []
        for upper, at in self.uppers:
            for folder, _, files in os.walk(upper):
                inside = os.path.relpath(folder, upper)
                found += [os.path.normpath(os.path.join(at, inside, name)) for name in files]
        return tuple(sorted(found))

    def outputs(self) -> dict[str, int]:
        """Files that the program made or changed, with their bytes on disk, largest first; they go with `close`. {} in place.

        Without temporary files, byte code and git's own; relative where they lie in the project.
        """
        found: dict[str, int] = {}
        if self.protection in ("landlock", "manifest"):
            places = [(path, path) for path in self.written()]
        else:
            uppers = [(upper, at) for upper, at in self.uppers if at not in layers.TEMPORARY]
            places = [
                (os.path.join(folder, name), os.path.normpath(os.path.join(at, os.path.relpath(folder, upper), name)))
                for upper, at in uppers
                for folder, _, files in os.walk(upper)
                for name in files
            ]
        for path, shown in places:
            with contextlib.suppress(OSError):
                facts = os.lstat(path)
                if stat.S_ISREG(facts.st_mode) and not {".git", "__pycache__"} & set(Path(shown).parts):
                    inside = layers.beneath(shown, self.project)
                    found[os.path.relpath(shown, self.project) if inside else shown] = facts.st_blocks * 512
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def close(self) -> None:
        """Remove the layers. Safe to repeat; processes that still run in the view lose what they wrote."""
        for path in (self.layer, os.path.dirname(self.spec)):
            if path and os.path.isdir(path):
                remove(path)


def entered(spec: str, argv: Sequence[str]) -> list[str]:
    """The command that enters the view of the specification `spec` and becomes `argv`."""
    return [sys.executable, "-I", "-S", _ENTER, spec, "--", *argv]


def protection(sandbox: Sandbox) -> tuple[Protection, str]:
    """What holds for runs of this sandbox, and how or why not better."""
    found = strategy_of(sandbox)
    return found.protection, found.reason


def open_view(
    sandbox: Sandbox,
    side: Side,
    run_dir: Path,
    *,
    cwd: str = ".",
    writable: Sequence[str] = (),
    in_place: bool = False,
    only: Protection | None = None,
) -> View:
    """A view of the checkout of `side` for one run.

    `cwd` is relative to the project; `run_dir` is writable at its real path; each folder of `writable` gets a layer; `only` asks for
    one protection instead of the best that holds. Raises `UsageError` for a folder that does not exist and for a full disk.
    """
    run_dir = Path(run_dir).resolve()
    for folder in (str(run_dir), *writable):
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is not a folder", "make it first, or name another")
    if in_place:
        return _plain(sandbox, run_dir, cwd)
    strategy = strategy_of(sandbox) if only is None else trial.Strategy(only, "", os.path.join(sandbox.directory, "layers"))
    try:
        folders = tuple(os.path.realpath(path) for path in writable)
        return _open(sandbox, side, strategy, run_dir, cwd, folders, steps_expected=only is not None)
    except OSError as bad:
        raise UsageError(f"{bad.filename}: {bad.strerror}", "free that place, or put the sandbox elsewhere: --base DIR") from None


def sweep(sandbox: Sandbox) -> None:
    """Remove the layers that killed runs left in the sandbox. To be called while no run of this sandbox is alive."""
    for left in Path(sandbox.directory, "layers").glob("*"):
        with contextlib.suppress(OSError):
            remove(str(left))


def strategy_of(sandbox: Sandbox) -> trial.Strategy:
    return trial.find(sandbox, lambda strategy, run_dir: _open(sandbox, "baseline", strategy, run_dir, ".", ()))


def _open(
    sandbox: Sandbox,
    side: Side,
    strategy: trial.Strategy,
    run_dir: Path,
    cwd: str,
    writable: tuple[str, ...],
    *,
    steps_expected: bool = False,
) -> View:
    layer = Path(strategy.place, uuid.uuid4().hex[:12])
    layer.mkdir(parents=True, mode=0o700)
    try:
        if strategy.protection == "mount":
            return _mounted(sandbox, side, layer, run_dir, cwd, writable)
        stand_ins = outside.beside(layer, run_dir, known=steps_expected)
        return _copied(sandbox, side, layer, run_dir, cwd, writable, strategy.protection, stand_ins)
    except BaseException:
        remove(str(layer))
        raise


def _mounted(sandbox: Sandbox, side: Side, layer: Path, run_dir: Path, cwd: str, writable: tuple[str, ...]) -> View:
    start = start_of(sandbox.project, (str(Path(sandbox.checkout(side), sandbox.prefix)), sandbox.project), cwd)
    overlays = layers.build(sandbox, side, layer, writable)
    flat = [inner for overlay in overlays for inner in (overlay, *overlay.instead)]
    over, agents = outside.covers(layer, run_dir)
    spec = {
        "mode": "mount",
        "cwd": start,
        "overlays": [dataclasses.asdict(overlay) for overlay in overlays],
        "shared": [str(run_dir), *(overlay.plain for overlay in flat if overlay.variables)],
        "sockets": layers.sockets(),
        "over": over,
        "notes": False,
    }
    there = start if os.path.isdir(start) else "/"
    uppers = tuple((overlay.upper, overlay.at) for overlay in flat)
    return View("mount", sandbox.project, there, {**environment_of(layer), **agents}, str(layer), write_spec(layer, spec), uppers)


def _copied(
    sandbox: Sandbox,
    side: Side,
    layer: Path,
    run_dir: Path,
    cwd: str,
    writable: tuple[str, ...],
    protection: Protection,
    stand_ins: dict[str, str],
) -> View:
    copy, temporary = layer / "project", layer / "tmp"
    stamps = copies.make(sandbox, side, copy)
    temporary.mkdir()
    project = os.path.normpath(copy / sandbox.prefix)
    start = start_of(project, (project,), cwd)
    home = os.path.realpath(Path.home())
    # Landlock allows whole folders: none may hold the original or the sandbox
    allowed = [path for path in ("/tmp", "/var/tmp", *(os.path.join(home, name) for name in _CACHES)) if not holds(path, sandbox)]
    spec = {
        "mode": protection,
        "cwd": start,
        "writable": [str(copy), str(temporary), str(run_dir), "/proc", *devices(), *allowed, *writable],
        "notes": False,
    }
    moved = (os.path.realpath(sandbox.repository), os.path.realpath(copy))
    ways = dict(zip(("TRAINFLASH_ORIGINAL", "TRAINFLASH_COPY"), moved, strict=True))  # for the probe, which leads imports
    environment = {**environment_of(layer), **ways, **stand_ins, "TMPDIR": str(temporary)}
    return View(protection, project, start, environment, str(layer), write_spec(layer, spec), copied=stamps, moved=moved)


def _plain(sandbox: Sandbox, run_dir: Path, cwd: str) -> View:
    start = start_of(sandbox.project, (sandbox.project,), cwd)
    folder = Path(sandbox.directory, "layers", uuid.uuid4().hex[:12])
    folder.mkdir(parents=True, mode=0o700)
    spec = write_spec(folder, {"mode": "in_place", "cwd": start, "notes": False})
    return View("in_place", sandbox.project, start, {"TRAINFLASH_VIEW": folder.name}, "", spec)


def start_of(project: str, sources: Sequence[str], cwd: str) -> str:
    start = os.path.normpath(os.path.join(project, cwd))
    if not any(os.path.isdir(os.path.join(source, cwd)) for source in sources):
        raise UsageError(f"{cwd}: there is no such folder in the project", "start the command from a folder of the project")
    return start


def environment_of(layer: Path) -> dict[str, str]:
    own = {} if "GIT_CONFIG_COUNT" in os.environ else _GIT_CHECKS_LESS
    return {"TRAINFLASH_VIEW": layer.name, **own}


def write_spec(layer: Path, spec: dict[str, object]) -> str:
    path = layer / "spec.json"
    path.write_text(json.dumps(spec), encoding="ascii")
    return str(path)


def devices() -> list[str]:
    """What in /dev may be written: all but links and disks, through which any file could be reached."""
    entries = (entry for entry in os.scandir("/dev") if not entry.is_symlink() and entry.path not in _DISKS)
    return sorted(entry.path for entry in entries if not stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode))


def holds(folder: str, sandbox: Sandbox) -> bool:
    return any(layers.beneath(path, os.path.realpath(folder)) for path in (sandbox.repository, sandbox.directory))


def remove(folder: str) -> None:
    """Remove a layer; overlay leaves folders with mode 000 in it, and a program may leave others."""
    for at, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if not os.path.islink(path) and stat.S_IMODE(os.lstat(path).st_mode) & 0o700 != 0o700:
                os.chmod(path, 0o700)
    shutil.rmtree(folder)
    if os.path.basename(os.path.dirname(folder)) == trial.PLACE.format(os.geteuid()):
        with contextlib.suppress(OSError):  # another view still has its layers there
            os.rmdir(os.path.dirname(folder))
