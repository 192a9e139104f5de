"""Which protection holds here: tried in a child that really writes, and looked at from outside."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainflash.schema import Protection, Sandbox
from trainflash.view import listing

if TYPE_CHECKING:
    from trainflash.view.opening import View

TRIAL_SECONDS = 60  # a trial takes about 0.1 s; this bounds a hung file system
# argv: own file, file in the run's folder, then pairs of a guarded path and its device and inode outside. The paths are in hexadecimal:
# without a mount view, words of a command that name the original are led to its copy, and the trial has to reach the original itself.
# Nothing of the owner's is changed where nothing protects: a file is opened for writing and not written, a folder is known by its
# identity or as read-only.
_TRIAL = """
import os, stat, sys
def held(path, identity):
    facts = os.stat(path)
    if f"{facts.st_dev}:{facts.st_ino}" != identity or os.statvfs(path).f_flag & os.ST_RDONLY:
        return True
    if stat.S_ISDIR(facts.st_mode):
        return False
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return False
    except OSError:
        return True
own, run, *guarded = sys.argv[1:]
for path, identity in zip(guarded[::2], guarded[1::2]):
    path = os.fsdecode(bytes.fromhex(path))
    if not held(path, identity):
        sys.exit(f"a write reached {path}")
for path in (own, run):
    try:
        open(path, "x").close()
    except OSError as bad:
        sys.exit(f"{path}: {bad.strerror}")
"""

PLACE = "trainflash-{}"  # folder for layers outside of the sandbox, by user id
_NOT_HERE = ("layers cannot be made", "upperdir", "workdir", "create overlay")  # the folder for layers is to blame, not the machine


@dataclass(frozen=True)
class Strategy:
    """The protection that holds, why not a better one, and the folder for layers."""

    protection: Protection
    reason: str
    place: str


Open = Callable[[Strategy, Path], "View"]

_tried: dict[tuple[str, int], Strategy] = {}


def find(sandbox: Sandbox, open_with: Open) -> Strategy:
    """The best that passes its trial: mount view (in each place for layers), Landlock, else the manifest. Tried once a process."""
    key = (sandbox.directory, os.geteuid())
    if key not in _tried:
        _tried[key] = _find(sandbox, open_with)
    return _tried[key]


def _find(sandbox: Sandbox, open_with: Open) -> Strategy:
    own = os.path.join(sandbox.directory, "layers")
    refused = ""
    for place in (own, *_other_places()):
        said = _fails(sandbox, Strategy("mount", "", place), open_with)
        if said is None:
            how = "private mount namespace" if os.geteuid() == 0 else "private mount and user namespace"
            return Strategy("mount", how if place == own else f"{how}, layers in {place} ({refused})", place)
        refused = refused or said
        if not any(sign in said for sign in _NOT_HERE):
            break
    said = _fails(sandbox, Strategy("landlock", "", own), open_with)
    if said is None:
        return Strategy("landlock", f"no mount view ({refused}); Landlock does not stop chmod and time stamps", own)
    reason = f"no mount view ({refused}), no Landlock ({said}); the original is compared before and after instead"
    return Strategy("manifest", reason, own)


def _other_places() -> list[str]:
    name = PLACE.format(os.geteuid())
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), "/var/tmp", "/dev/shm"]
    return [os.path.join(place, name) for place in places if os.path.isdir(place) and os.access(place, os.W_OK)]


def _fails(sandbox: Sandbox, strategy: Strategy, open_with: Open) -> str | None:
    """Why a strategy does not protect here; None when it does."""
    mark = f".trainflash-trial-{uuid.uuid4().hex[:12]}"
    run_dir = Path(sandbox.directory, mark)
    try:
        run_dir.mkdir()
        view = open_with(strategy, run_dir)
    except OSError as bad:
        _remove(run_dir)
        return f"layers cannot be made in {strategy.place}: {bad.strerror}"
    own, arrived = Path(view.project, mark), run_dir / "arrived"
    try:
        command = [sys.executable, "-I", "-S", "-c", _TRIAL, str(own), str(arrived), *_guarded(sandbox, strategy.protection)]
        environment = {**os.environ, **view.env}
        done = subprocess.run(view.argv(command), cwd="/", env=environment, capture_output=True, timeout=TRIAL_SECONDS)
        leaked = strategy.protection == "mount" and os.path.lexists(own)  # the same path, outside
        succeeded = done.returncode == 0 and arrived.exists()
    except subprocess.TimeoutExpired:
        return f"the trial took more than {TRIAL_SECONDS} s"
    finally:
        view.close()
        for path in (own, arrived, run_dir):
            _remove(path)
    if leaked:
        return f"a write reached {own}"
    if not succeeded:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        return said[-1].removeprefix("trainflash: the view cannot be entered: ")
    return None


def _guarded(sandbox: Sandbox, protection: Protection) -> list[str]:
    """Paths that a run must not reach, each with what it is outside: folders where mounts protect, else a file that we may write."""
    if protection == "mount":
        paths = [sandbox.repository, os.path.dirname(sandbox.repository)]
    else:
        tracked = (os.path.join(sandbox.repository, path) for path in sorted(listing.read(sandbox).ours))
        ours = (path for path in tracked if os.path.isfile(path) and not os.path.islink(path) and os.access(path, os.W_OK))
        paths = list(itertools.islice(ours, 1))
    return [word for path in paths for word in (os.fsencode(path).hex(), f"{os.stat(path).st_dev}:{os.stat(path).st_ino}")]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
