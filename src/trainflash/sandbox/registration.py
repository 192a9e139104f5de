"""What a repository knows of a sandbox: two linked worktrees and the refs that keep its commits.

Both have names of their own, made from the sandbox's folder, so that whatever a kill leaves of them is found again: files, half-made
entries and git's lock files alike. A repository that cannot be written, or keeps its refs in another way than as files, is not
touched: the sandbox then has a repository beside its checkouts that borrows the owner's objects.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

from trainflash import git_runner
from trainflash.sandbox.git import Git, common_dir

CHECKOUTS = ("baseline", "worktree")
PRIVATE = "repository.git"
_DELETING = "deleting-refs"  # there while packed refs are rewritten
_NOT_SOURCE = ".venv/\nvenv/\nenv/\n__pycache__/\n*.pyc\nnode_modules/\n.mypy_cache/\n.pytest_cache/\n.ruff_cache/\n.ipynb_checkpoints/\n"


def ref_of(directory: str) -> str:
    """The folder of refs that keep this sandbox's commits."""
    return f"refs/trainflash/{_digest(directory)}"


def own_repository(directory: Path, project: Path, owners: Git | None) -> Git:
    """A repository of our own beside the checkouts: for a project that has none, or whose own must not or cannot be written."""
    folder = directory / PRIVATE
    remove(folder)
    kind = owners.attempt("rev-parse", "--show-object-format")[1].decode().strip() if owners else ""
    format_ = [f"--object-format={kind}"] if kind and kind != "sha1" else []
    made = git_runner.execute(["init", "--quiet", "--bare", "--template=", *format_, str(folder)], directory)
    made.or_raise("init", "install git 2.30 or newer")
    (folder / "info").mkdir(exist_ok=True)
    if owners is None:
        (folder / "info" / "exclude").write_text(_NOT_SOURCE)
        return Git(str(folder), str(project))
    common = common_dir(owners)
    for source, target in (
        (common / "info" / "exclude", "info/exclude"),
        (Path(owners.git_dir, "index"), "index"),
        (common / "shallow", "shallow"),
    ):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(source, folder / target)
    (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(common / "objects") + b"\n")
    made = Git(str(folder), owners.work_tree)
    ignored = owners.attempt("config", "--get", "core.excludesFile")[1]
    if ignored.strip():
        made.run("config", "core.excludesFile", os.fsdecode(ignored).removesuffix("\n"))
    return made


def can_hold(repository: Git) -> bool:
    """Whether the owner's repository can take our worktrees, refs and objects."""
    common = common_dir(repository)
    if (common / "reftable").exists():
        return False
    return all(os.access(place, os.W_OK | os.X_OK) for place in (common, common / "objects", common / "refs"))


def register(repository: Git, directory: Path, name: str, commit: str) -> Git:
    """A linked worktree at `directory/name` that stands on `commit` and is locked against pruning; its files are not made.

    The files are those of gitrepository-layout(5). Hooks cannot run, and nothing else of the repository is written.
    """
    common = common_dir(repository)
    entry, checkout = common / "worktrees" / _entry(directory, name), directory / name
    remove(entry)
    checkout.mkdir()
    entry.mkdir(parents=True)
    for file, content in (
        ("locked", b"a sandbox of trainflash\n"),
        ("commondir", b"../..\n"),
        ("HEAD", commit.encode() + b"\n"),
        ("gitdir", os.fsencode(checkout / ".git") + b"\n"),
    ):
        (entry / file).write_bytes(content)
    (checkout / ".git").write_bytes(b"gitdir: " + os.fsencode(entry) + b"\n")
    return Git(str(entry), str(checkout))


def unregister(repository: Git, directory: Path) -> None:
    """Take our worktrees and refs out of the repository, also half-made ones and those that git packed."""
    if not os.path.isdir(repository.git_dir):
        return
    common = common_dir(repository)
    for name in CHECKOUTS:
        remove(common / "worktrees" / _entry(directory, name))
    ref = ref_of(str(directory))
    remove(common / ref)
    _forget_packed(repository, common, directory, ref)
    for folder in (common / "worktrees", common / "refs" / "trainflash"):
        with contextlib.suppress(OSError):  # not empty: the owner's own, or another sandbox's
            folder.rmdir()


def clear_locks(git: Git, directory: str) -> None:
    """Remove lock files that a killed git left in our worktree and our refs. To be called by the only command that writes there."""
    places = (Path(git.git_dir), common_dir(git) / ref_of(directory))
    for lock in (lock for place in places for lock in place.rglob("*.lock")):
        lock.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file or a whole folder, also one whose permissions are against it; absent is fine."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for at, names, _ in os.walk(path):
        for name in names:
            folder = os.path.join(at, name)
            if not os.path.islink(folder):
                os.chmod(folder, 0o700)
    shutil.rmtree(path)


def _forget_packed(repository: Git, common: Path, directory: Path, ref: str) -> None:
    """Rewrite packed refs only where ours are among them; a kill there leaves a lock in the owner's folder, taken away next time."""
    lock, mark = common / "packed-refs.lock", directory / _DELETING
    if mark.exists():
        with contextlib.suppress(FileNotFoundError):
            if lock.stat().st_mtime_ns >= mark.stat().st_mtime_ns:
                lock.unlink()
    try:
        packed = (common / "packed-refs").read_bytes()
    except FileNotFoundError:
        packed = b""
    ours = [line.split(b" ", 1)[1] for line in packed.splitlines() if f" {ref}/".encode() in line]
    if ours:
        mark.touch()
        repository.run("update-ref", "--no-deref", "--stdin", stdin=b"".join(b"delete %s\n" % name for name in ours))
        remove(common / ref)
    mark.unlink(missing_ok=True)


def _entry(directory: Path, name: str) -> str:
    return f"trainflash-{_digest(str(directory))}-{name}"


def _digest(directory: str) -> str:
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]
