"""Where hostile acts are tried: an owner's project, what it looks like to the last byte, and one run of a program in a view of it."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from trainflash import sandbox
from trainflash.view import open_view

GIT = (
    "git", "-c", "user.name=Owner", "-c", "user.email=owner@example.org", "-c", "init.defaultBranch=main",
    "-c", "protocol.file.allow=always", "-c", "commit.gpgSign=false",
)  # fmt: skip
DEADLINE_S = 120  # of one act on a machine under load
_ALLOWED = ("objects", "worktrees", "refs/trainflash")  # what of ours may lie in the owner's .git


def git(where: Path, *arguments: str) -> str:
    """Git as the owner runs it, without touching the index."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run([*GIT, *arguments], cwd=where, env=environment, check=True, capture_output=True).stdout.decode()


def look(root: Path, git_dir: Path | None = None) -> dict[str, tuple]:
    """All of everything beneath `root`: bytes, mode, owner, attributes, times of change. Of git's folder only the files, not ours.

    Without the time at which the inode changed: a hard link that was made and taken away again would leave nothing else.
    """
    git_dir = git_dir or root / ".git"
    seen = {}
    for at, names, files in os.walk(root):
        if Path(at) == git_dir:
            names[:] = [name for name in names if name not in _ALLOWED]
        if Path(at) == git_dir / "refs":
            names[:] = [name for name in names if name != "trainflash"]
        for name in (*names, *files):
            path = Path(at, name)
            facts = path.lstat()
            inside_git = path == git_dir or git_dir in path.parents
            if stat.S_ISDIR(facts.st_mode):
                if not inside_git:
                    seen[str(path)] = (facts.st_mode, facts.st_uid, facts.st_mtime_ns)
                continue
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            attributes = tuple(os.listxattr(path, follow_symlinks=False)) if hasattr(os, "listxattr") else ()
            seen[str(path)] = (content, facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, facts.st_nlink, attributes)
    return seen


def make_project(root: Path) -> Path:
    """A repository with a dirty file, a package, ignored data and a stash."""
    (root / "pkg").mkdir(parents=True)
    (root / "data" / "deep").mkdir(parents=True)
    (root / "train.py").write_text("print('owner')\n")
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "old.py").write_text("o = 1\n")
    (root / ".gitignore").write_text("data/\n__pycache__/\n")
    (root / "data" / "x.bin").write_bytes(b"data")
    (root / "data" / "deep" / "y.bin").write_bytes(b"deep")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    (root / "train.py").write_text("print('stashed')\n")
    git(root, "stash", "-q")
    (root / "train.py").write_text("print('dirty')\n")
    return root


class Helper(threading.Thread):
    """A program of the owner's outside any view, which writes into the project when it is asked over a socket."""

    def __init__(self, path: Path, target: Path) -> None:
        super().__init__(daemon=True)
        self.target = target
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen()

    def run(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            with client:
                client.recv(10)
                self.target.write_text("by the helper\n")
                client.sendall(b"!")


class Ground:
    """One project at a fixed path, made anew when something hurt it, and its sandbox."""

    def __init__(self, base: Path) -> None:
        self.project = base / "work" / "project"
        self.template = make_project(base / "template")
        self.socket = base / "s"
        self.helper = Helper(self.socket, self.project / "train.py")
        self.helper.start()
        self.box: sandbox.Sandbox | None = None
        self.before: dict[str, tuple] = {}
        self.renew()

    def renew(self) -> None:
        """A project as new; a sandbox of the old one is of no use any more."""
        shutil.rmtree(self.project.parent, ignore_errors=True)
        self.project.parent.mkdir()
        shutil.copytree(self.template, self.project, symlinks=True)
        if self.box is not None:
            shutil.rmtree(self.box.directory)
            self.box = None
        self.before = look(self.project)

    def made(self) -> sandbox.Sandbox:
        """The sandbox of the project; its making changes nothing."""
        if self.box is None:
            self.box = sandbox.create(self.project)
            assert look(self.project) == self.before
        return self.box

    def unchanged(self) -> bool:
        return look(self.project) == self.before

    def run(self, protection: str, command: list[str], *, alone: bool = False, outlives: bool = False) -> subprocess.CompletedProcess:
        """Run a command under `protection` ("none": in the project itself), started from inside the project.

        `alone`: in a mount namespace of its own where no view makes one.
        """
        folder = self.project.parent.parent / f"run-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        inode = (self.project / "train.py").stat().st_ino
        environment = {**os.environ, "ORIGINAL": str(self.project), "RUN": str(folder), "HELPER": str(self.socket), "INODE": str(inode)}
        view = None if protection == "none" else open_view(self.made(), "candidate", folder, only=protection)
        argv = ["unshare", "-m", *command] if alone and protection in ("none", "manifest") and os.geteuid() == 0 else command
        try:
            words = argv if view is None else view.argv(argv)
            done = subprocess.run(
                words,
                cwd=self.project if view is None else view.cwd,
                env=environment if view is None else {**environment, **view.env},
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                stdin=subprocess.DEVNULL,
            )
        finally:
            if view is not None:
                view.close()
        if outlives:
            (folder / "go").touch()
            wait_for(lambda: (folder / "done").exists())
        assert "the view cannot be entered" not in done.stderr
        assert protection not in ("mount", "landlock") or not (folder / "disk").exists(), "a disk could be written"
        shutil.rmtree(folder)
        return done


def wait_for(condition) -> None:
    """Until `condition()` holds. Fails after the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.02)


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]
