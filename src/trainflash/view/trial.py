"""Which protection holds here: tried in a child that really writes, and looked at from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainflash.schema import Protection, Sandbox

if TYPE_CHECKING:
    from trainflash.view import View

TRIAL_SECONDS = 60  # a trial takes about 0.1 s; this bounds a hung file system
# argv: own file, file in the original, file beside the original, file in the run's folder
_TRIAL = """
import sys
def write(path):
    try:
        open(path, "x").close()
        return True
    except OSError as bad:
        print(path, bad.strerror, file=sys.stderr)
        return False
own, original, beside, run = sys.argv[1:]
write(original) if original != own else None
write(beside)
sys.exit(0 if write(own) and write(run) else 3)
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
    original = Path(sandbox.repository, mark)
    beside = original.parent.parent / mark
    try:
        run_dir.mkdir()
        view = open_with(strategy, run_dir)
    except OSError as bad:
        _remove(run_dir)
        return f"layers cannot be made in {strategy.place}: {bad.strerror}"
    try:
        own = Path(view.project, mark)
        paths = [str(path) for path in (own, original, beside, run_dir / "arrived")]
        command = view.argv([sys.executable, "-I", "-S", "-c", _TRIAL, *paths])
        done = subprocess.run(command, cwd="/", env={**os.environ, **view.env}, capture_output=True, timeout=TRIAL_SECONDS)
        leaked = [path for path in (original, beside) if os.path.lexists(path)]
        arrived = (run_dir / "arrived").exists()
    except subprocess.TimeoutExpired:
        return f"the trial took more than {TRIAL_SECONDS} s"
    finally:
        view.close()
        for path in (original, beside, run_dir / "arrived", run_dir):
            _remove(path)
    if leaked:
        return f"a write reached {leaked[0]}"
    if done.returncode or not arrived:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        return said[-1].removeprefix("trainflash: the view cannot be entered: ")
    return None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
