"""Makes, finds and discards sandboxes.

A kill at any moment leaves either a whole sandbox or a folder without `sandbox.json`, which the next `create` sweeps away. In the
owner's `.git` only `worktrees/*`, objects and `refs/trainflash/*` are added; `discard` takes all but the objects away again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.sandbox import manifest
from trainflash.sandbox.checkout import Origin, write_checkout
from trainflash.sandbox.git import Git, common_dir, discover
from trainflash.sandbox.registration import CHECKOUTS, PRIVATE, can_hold, own_repository, ref_of, register, remove, unregister
from trainflash.sandbox.snapshot import LARGE_FILE_BYTES, Snapshot, commit, take
from trainflash.schema import Protection, Sandbox, read_document, write_document

DOCUMENT = "sandbox.json"
FILES = "files.json"  # paths of the owner's state that were taken, and those that git does not ignore but were left out
ORIGINAL = "original.json"
LOCK_PATIENCE_S = 1.0  # own: a child between fork and exec holds what its killed parent held, for milliseconds
_TEMPORARY = ("index-*", "links-*", "merge-*", "proposal-*", ".trainflash-trial-*")  # what a killed command may leave
_KEPT = ("tuning_log.yaml", "writebacks")

Protect = Callable[[Sandbox], tuple[Protection, str]]


def create(project: Path, base: Path | None = None, *, protect: Protect | None = None) -> Sandbox:
    """A sandbox of the project's state as it is now, in `base` (default: the state folder of the user).

    `protect` tries what runs in it will be protected by (`view.protection`); without it, that stands as not tried.
    Raises `UsageError` when the project cannot be read, git refuses, or this place has a sandbox of the project already.
    """
    project = _checked(Path(project))
    repository = discover(project)
    directory = _directory(project, base)
    root = Path(repository.work_tree) if repository else project
    if directory.is_relative_to(root):
        raise UsageError(f"{directory} lies inside the project", "name a folder outside of it: --base DIR")
    _make_folder(directory)
    with _locked(directory):
        _refuse_existing(directory)
        _sweep(directory, repository if repository and can_hold(repository) else None)
        try:
            made = _fill(directory, project, repository)
            if protect:
                protection, reason = protect(made)
                made = replace(made, protection=protection, protection_reason=reason)
            write_document(directory / DOCUMENT, made)
        except BaseException:
            _sweep(directory, repository if repository and can_hold(repository) else None)
            raise
    if base is not None:
        _remember(directory, project)
    return made


def load(directory: Path) -> Sandbox:
    """The sandbox in `directory`. Raises `UsageError` when there is none or its checkouts are gone."""
    document = Path(directory).absolute() / DOCUMENT
    if not document.exists():
        raise UsageError(f"{document.parent} is no sandbox", "name the directory that `trainflash sandbox create` printed, or leave it out")
    found = read_document(Sandbox, document)
    broken = _broken(found)
    if broken:
        raise UsageError(broken, "make the sandbox anew: trainflash sandbox create; its log stays")
    return found


def newest(project: Path) -> Sandbox | None:
    """The sandbox of this project that was created last, whatever its place; None where there is none."""
    project = Path(project).resolve()
    found = []
    for place in state_folder().glob(f"{_name(project)}*/{DOCUMENT}"):
        with contextlib.suppress(UsageError):
            found.append(load(place.resolve().parent))
    own = [sandbox for sandbox in found if sandbox.project == str(project)]
    return max(own, key=lambda sandbox: sandbox.created_utc, default=None)


def discard(sandbox: Sandbox, *, everything: bool = False) -> None:
    """Remove checkouts, registration, refs and runs; the log, reports and records of write-backs stay unless `everything`.

    Safe to repeat after a kill. Raises `UsageError` while another command is creating or discarding here.
    """
    directory = Path(sandbox.directory)
    with _locked(directory):
        repository = None
        if not (directory / PRIVATE).exists() and os.path.isdir(sandbox.repository):
            repository = discover(Path(sandbox.repository))
        _sweep(directory, repository)
        _clear(directory, everything=everything)
        if everything:
            remove(directory)
    for link in state_folder().glob(f"{_name(Path(sandbox.project))}@*"):
        if not link.exists():
            link.unlink(missing_ok=True)


def _clear(directory: Path, *, everything: bool = False) -> None:
    """Remove what belongs to a sandbox's history, its document last."""
    for entry in list(directory.iterdir()):
        kept = entry.name in _KEPT or entry.name.startswith("report")
        if entry.name != DOCUMENT and (everything or not kept):
            remove(entry)
    remove(directory / DOCUMENT)


def repository_of(sandbox: Sandbox, checkout: str) -> Git:
    """Git as seen from one of the sandbox's checkouts. Raises `UsageError` when its registration is gone."""
    try:
        said = Path(checkout, ".git").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as bad:
        raise UsageError(f"{checkout}/.git: {bad.strerror}", "discard this sandbox and make a new one") from None
    return Git(said.removeprefix("gitdir: ").removesuffix("\n"), checkout)


def origins(sandbox: Sandbox, repository: Git) -> dict[str, Origin]:
    """How each file of the owner's state stood when it was taken."""
    stamps = manifest.read(Path(sandbox.directory, ORIGINAL)).files
    return _origins(stamps, {path: entry.oid for path, entry in repository.tree(sandbox.base_ref).items()})


def original(sandbox: Sandbox) -> Git | None:
    """The original seen through the repository that holds the sandbox's history; None where that is gone."""
    private = Path(sandbox.directory, PRIVATE)
    return Git(str(private), sandbox.repository) if private.is_dir() else discover(Path(sandbox.project))


def watched(sandbox: Sandbox) -> tuple[tuple[str, ...], str]:
    """The folders of the owner's git and a digest of the entries of its index, as `manifest.changes` takes them."""
    return _watched(discover(Path(sandbox.project)))


def _watched(owners: Git | None) -> tuple[tuple[str, ...], str]:
    if owners is None:
        return (), ""
    entries = owners.run("ls-files", "-z", "-s", "-v")
    return (owners.git_dir, str(common_dir(owners))), hashlib.sha256(entries).hexdigest()


def _origins(stamps: dict[str, manifest.Stamp], oids: dict[str, str]) -> dict[str, Origin]:
    return {path: Origin(oid, stamps[path][1], stamps[path][2]) for path, oid in oids.items() if path in stamps}


def _checked(project: Path) -> Path:
    if not project.exists():
        raise UsageError(f"{project}: there is no such project", "name the folder that holds the training code")
    if not project.is_dir():
        raise UsageError(f"{project} is not a folder", "name the folder that holds the training code")
    if not os.access(project, os.R_OK | os.X_OK):
        raise UsageError(f"{project} cannot be read", "run as a user who may read it")
    resolved = project.resolve()
    if ".git" in resolved.parts:
        raise UsageError(f"{resolved} lies inside a .git folder", "name the folder that holds the training code")
    return resolved


def _broken(sandbox: Sandbox) -> str:
    """Why the sandbox cannot be used any more; empty when it can."""
    for checkout in (sandbox.baseline, sandbox.worktree):
        if not os.path.isdir(checkout):
            return f"{checkout} is gone"
        try:
            registration = Path(checkout, ".git").read_text(encoding="utf-8", errors="surrogateescape").removeprefix("gitdir: ")
        except OSError:
            return f"{checkout} is no checkout any more"
        if not os.path.isdir(registration.rstrip("\n")):
            return f"{sandbox.repository} is not the repository any more that {sandbox.directory} was made of"
    return ""


def _refuse_existing(directory: Path) -> None:
    """Let only a place without a usable sandbox pass; one whose checkouts somebody removed is made anew."""
    if not (directory / DOCUMENT).exists():
        return
    try:
        found = read_document(Sandbox, directory / DOCUMENT)
    except UsageError as bad:
        raise UsageError(
            f"{directory} holds a sandbox that cannot be read: {bad.message}", "remove that folder, or use --base DIR"
        ) from None
    if not _broken(found):
        raise UsageError(
            f"{directory} is a sandbox of this project already",
            "use it (trainflash sandbox status), discard it (trainflash sandbox discard) or name another place: --base DIR",
        )
    _clear(directory)  # its runs were of commits that are gone, too


def state_folder() -> Path:
    """Where sandboxes lie unless a place is named."""
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state") / "trainflash"


def _name(project: Path) -> str:
    digest = hashlib.sha256(os.fsencode(str(project))).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', project.name) or 'root'}-{digest}"


def _directory(project: Path, base: Path | None) -> Path:
    return (Path(base) if base is not None else state_folder()).resolve() / _name(project)


def _make_folder(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as bad:
        raise UsageError(f"{directory}: {bad.strerror}", "name a place that you can write: --base DIR") from None


def _remember(directory: Path, project: Path) -> None:
    """A link in the state folder, so that `newest` finds a sandbox at another place."""
    link = state_folder() / f"{_name(project)}@{hashlib.sha256(os.fsencode(str(directory))).hexdigest()[:8]}"
    if link.parent == directory.parent:
        return
    with contextlib.suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(directory)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the folder for ourselves; the lock ends with the process."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as bad:
        raise UsageError(f"{directory}: {bad.strerror}", "there is no sandbox here") from None
    if not hold(handle):
        os.close(handle)
        raise UsageError(f"another command is working on {directory}", "wait for it, or name another place: --base DIR")
    try:
        yield
    finally:
        os.close(handle)


def hold(handle: int) -> bool:
    """Lock an open file or folder; False when another process has it. A killed one's children that had not begun yet may take a moment."""
    until = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
        time.sleep(0.02)


def _fill(directory: Path, project: Path, owners: Git | None) -> Sandbox:
    repository = owners if owners and can_hold(owners) else own_repository(directory, project, owners)
    git_dirs, index = _watched(owners)
    stamps = manifest.scan(Path(repository.work_tree), git_dirs=git_dirs, index=index)
    taken = take(repository, directory)
    head = (owners or repository).attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}")[1].decode().strip() or None
    ref = ref_of(str(directory))
    base_ref = commit(repository, taken.tree, [head] if head else [], "The owner's state when the sandbox was created", ref)
    known = _origins(stamps.files, {path: entry.oid for path, entry in taken.files.items()})
    made = {name: register(repository, directory, name, base_ref) for name in CHECKOUTS}

    def fill(name: str) -> None:
        made[name].run("read-tree", base_ref)
        write_checkout(made[name], base_ref, directory / name, known)

    with ThreadPoolExecutor(len(CHECKOUTS)) as pool:  # git writes most of it, in processes of its own
        list(pool.map(fill, CHECKOUTS))
    manifest.write(stamps, directory / ORIGINAL)
    (directory / FILES).write_text(json.dumps({"taken": list(taken.files), "left_out": taken.left_out}), encoding="ascii")
    return Sandbox(
        project=str(project),
        repository=repository.work_tree,
        directory=str(directory),
        baseline=str(directory / "baseline"),
        worktree=str(directory / "worktree"),
        base_ref=base_ref,
        head=head,
        created_utc=datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        protection="manifest",
        protection_reason="not tried",
        warnings=_warnings(taken, stamps, owners, repository),
    )


def _warnings(taken: Snapshot, stamps: manifest.Manifest, owners: Git | None, repository: Git) -> tuple[str, ...]:
    found = []
    if owners is None:
        found.append("the project is in no git repository: the sandbox keeps its history in one of its own")
    elif repository is not owners:
        found.append("the project's repository is not to be written: the sandbox keeps its history in one of its own")
    if taken.left_out:
        some = ", ".join(taken.left_out[:3]) + (", …" if len(taken.left_out) > 3 else "")
        why = f"above {LARGE_FILE_BYTES >> 20} MiB, unreadable, a repository or data"
        found.append(f"{len(taken.left_out)} paths are read from the original, not copied ({why}): {some}")
    if stamps.unlisted:
        found.append(f"{len(stamps.unlisted)} folders are too many to watch file by file")
    return tuple(found)


def _sweep(directory: Path, repository: Git | None) -> None:
    """Take away the checkouts, layers and temporary files here and what the repository remembers of them."""
    try:
        if repository:
            unregister(repository, directory)
    except OSError as bad:
        mend = "make the repository writable again, then: trainflash sandbox discard"
        raise UsageError(f"{bad.filename}: {bad.strerror}", mend) from None
    for name in (*CHECKOUTS, PRIVATE, "layers", FILES, ORIGINAL):
        remove(directory / name)
    for pattern in _TEMPORARY:
        for entry in directory.glob(pattern):
            remove(entry)
