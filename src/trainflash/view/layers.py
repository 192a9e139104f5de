"""The layers of a mount view: which paths get one, and what lies beneath each.

The project's stack, top first: the run's own layer, links (an empty `.git`), the checkout, whiteouts, the original. So what git does
not ignore comes from the checkout alone, and what it ignores from the original alone, seen through and never written.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.schema import Sandbox, Side
from trainflash.view import listing

TEMPORARY = ("/tmp", "/var/tmp")
_HOME_FOLDERS = (".cache", ".config", ".local", ".triton", ".nv", ".torch", ".keras", ".matplotlib", ".huggingface", ".wandb")
_CACHE_VARIABLES = (
    "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HF_HOME", "TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "WANDB_DIR", "WANDB_CACHE_DIR", "PYTHONPYCACHEPREFIX",
)  # fmt: skip
FOREIGN_FOLDERS = 5_000  # ignored folders that are looked at for their owner; data sets of more are read, seldom written


@dataclass(frozen=True)
class Overlay:
    """One layered path, as `mounts.py` reads it. `instead` and `variables` (set to `plain`) stand in where it cannot be layered."""

    at: str
    lowers: tuple[str, ...]
    upper: str
    work: str
    required: bool
    is_mount: bool = False
    instead: tuple[Overlay, ...] = ()
    variables: tuple[str, ...] = ()
    plain: str = ""


def build(sandbox: Sandbox, side: Side, layer: Path, writable: Sequence[str]) -> tuple[Overlay, ...]:
    """Make the folders of one run's layers in `layer`, outermost path first.

    Raises `OSError` where a layer cannot be made, and `UsageError` where git or the sandbox's files fail.
    """
    root = sandbox.repository
    git_dir = listing.git_dir(sandbox)
    links, whiteouts = layer / "links", layer / "whiteouts"
    listed = listing.read(sandbox)
    _make_links(Path(root), git_dir, links)
    if os.geteuid() != 0:
        _make_own_folders(Path(root), links, listed.theirs)
    _make_whiteouts(Path(root), Path(sandbox.checkout(side)), listed.ours, whiteouts)
    stacks: dict[str, tuple[tuple[str, ...], bool]] = {root: ((str(links), sandbox.checkout(side), str(whiteouts), root), True)}
    if git_dir:
        stacks[git_dir] = ((git_dir,), True)
    for path in writable:
        if not beneath(path, root):
            stacks.setdefault(path, ((path,), True))
    for path in _places():
        if not any(beneath(path, other) for other in (*stacks,)):
            stacks.setdefault(path, ((path,), False))
    mounted = [path for path in _mount_points() if path not in stacks and any(beneath(path, other) for other in stacks)]
    made = [_overlay(layer, at, lowers, required) for at, (lowers, required) in stacks.items()]
    made += [_overlay(layer, path, (path,), False, is_mount=True) for path in mounted if os.path.exists(path)]
    return tuple(sorted(made, key=lambda overlay: overlay.at.count("/")))


def sockets() -> tuple[str, ...]:
    """Sockets in folders for temporary files: through an overlay nobody answers, so they are bound over themselves."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    paths = {line.split(None, 7)[7] for line in lines if len(line.split(None, 7)) > 7}
    found = {path for path in paths if any(beneath(path, folder) for folder in TEMPORARY) and _is_socket(path)}
    return tuple(sorted(found))


def _is_socket(path: str) -> bool:
    try:
        return os.path.realpath(path) == path and stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _places() -> Iterable[str]:
    """Folders that a program writes to as a matter of course: outermost first, so that inner ones need no layer of their own."""
    named = [os.environ.get(name, "") for name in _CACHE_VARIABLES]
    wanted = [os.path.realpath(path) for path in (*TEMPORARY, str(Path.home()), *named) if os.path.isabs(path)]
    folders = [path for path in wanted if path != "/" and os.path.isdir(path) and not beneath(path, "/dev") and not beneath(path, "/proc")]
    return sorted(set(folders), key=lambda path: path.count("/"))


def _overlay(layer: Path, at: str, lowers: tuple[str, ...], required: bool, *, is_mount: bool = False) -> Overlay:
    folder = layer / f"at-{len(list(layer.glob('at-*')))}"
    upper, work, plain = folder / "upper", folder / "work", folder / "plain"
    for made in (folder, upper, work, plain):
        made.mkdir()
    _take_after(upper, at)
    home = at == os.path.realpath(Path.home())
    inner = [os.path.join(at, name) for name in _HOME_FOLDERS] if home else []
    instead = tuple(_overlay(layer, path, (path,), False) for path in inner if os.path.isdir(path) and not os.path.islink(path))
    variables = ("TMPDIR",) if at == "/tmp" else ()
    return Overlay(at, lowers, str(upper), str(work), required, is_mount, instead, variables, str(plain))


def _take_after(folder: Path, original: str | Path) -> None:
    """Give `folder` the permissions and, where we may, the owner of `original`."""
    facts = os.stat(original)
    if os.geteuid() == 0:
        os.chown(folder, facts.st_uid, facts.st_gid)
    os.chmod(folder, facts.st_mode & 0o7777 | 0o700)


def _make_links(root: Path, git_dir: str | None, links: Path) -> None:
    """The topmost lower: hides the checkout's own `.git` file."""
    links.mkdir()
    _take_after(links, root)
    theirs, ours = root / ".git", links / ".git"
    if git_dir is None:
        hide(ours)
    elif theirs.is_symlink():
        ours.symlink_to(os.readlink(theirs))
    elif theirs.is_dir():
        ours.mkdir()
        _take_after(ours, theirs)
    else:
        shutil.copy2(theirs, ours)


def _make_own_folders(root: Path, links: Path, ignored: Sequence[str]) -> None:
    """For an ordinary user, whose overlay cannot copy the owner or group of others: own folders above such ignored ones.

    Without them, making a file in a folder of another group (a shared project) fails with EOVERFLOW.
    """
    own = (os.geteuid(), os.getegid())
    left = FOREIGN_FOLDERS
    for top in (path for path in ignored if (root / path).is_dir() and not (root / path).is_symlink()):
        for at, names, _ in os.walk(root / top):
            facts = os.lstat(at)
            left -= 1
            if left < 0:
                return
            if (facts.st_uid, facts.st_gid) != own:
                made = links / os.path.relpath(at, root)
                made.mkdir(parents=True, exist_ok=True)
                os.chmod(made, stat.S_IMODE(facts.st_mode) | 0o700)
            names[:] = [name for name in names if not os.path.islink(os.path.join(at, name))]


def _make_whiteouts(root: Path, checkout: Path, ours: frozenset[str], whiteouts: Path) -> None:
    """Hide what the original has, git does not ignore, and the checkout lacks: deleted by a candidate, or new since `create`."""
    whiteouts.mkdir()
    hide(whiteouts / ".trainflash")  # hides nothing; where it fails, so would a needed one
    hidden: set[str] = set()
    for path in sorted(ours):
        if os.path.lexists(checkout / path) or not os.path.lexists(root / path):
            continue
        top = _topmost_missing(checkout, path)
        if top is None or top in hidden:
            continue
        whole = top != path and _only(root, top, ours)
        hidden.add(top if whole else path)
        _make_whiteout(root, whiteouts, top if whole else path)


def _topmost_missing(checkout: Path, path: str) -> str | None:
    """The first part of `path` that the checkout lacks; None where it has something else there, which hides all beneath."""
    at = ""
    for part in Path(path).parts:
        at = os.path.join(at, part)
        if not os.path.lexists(checkout / at):
            return at
        if (checkout / at).is_symlink() or not (checkout / at).is_dir():
            return None
    return None


def _only(root: Path, folder: str, ours: frozenset[str]) -> bool:
    """Whether a folder of the original holds nothing that must be seen."""
    for at, names, files in os.walk(root / folder):
        links = [name for name in names if os.path.islink(os.path.join(at, name))]
        if any(os.path.relpath(os.path.join(at, name), root) not in ours for name in (*files, *links)):
            return False
    return True


def _make_whiteout(root: Path, whiteouts: Path, path: str) -> None:
    at = ""
    for part in Path(path).parts[:-1]:
        at = os.path.join(at, part)
        if not (whiteouts / at).is_dir():
            (whiteouts / at).mkdir()
            _take_after(whiteouts / at, root / at)
    hide(whiteouts / path)


def hide(path: Path) -> None:
    """What overlay takes for "deleted"; ordinary users may make it too."""
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
    except OSError as bad:
        raise OSError(bad.errno, f"whiteout: {bad.strerror}", str(path)) from None


def beneath(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _mount_points() -> list[str]:
    """Where something is mounted, in this namespace."""
    points = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            escaped = line.split()[4]
            points.append(os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), escaped)))
    return sorted(set(points))
