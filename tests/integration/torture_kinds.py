"""Kinds of project that an owner may have: each function turns a plain repository into one; it returns the folder to make a sandbox of."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from torture_ground import GIT, git

Kind = Callable[[Path], Path]


def _plain(root: Path) -> Path:
    return root


def _clean(root: Path) -> Path:
    git(root, "checkout", "-q", "--", ".")
    return root


def _staged(root: Path) -> Path:
    (root / "pkg" / "old.py").write_text("o = 2\n")
    git(root, "add", "pkg/old.py")
    (root / "pkg" / "old.py").write_text("o = 3\n")
    git(root, "rm", "-q", "--cached", "train.py")
    (root / "intent.py").write_text("i = 1\n")
    git(root, "add", "-N", "intent.py")
    return root


def _unborn(root: Path) -> Path:
    git(root, "checkout", "-q", "--orphan", "fresh")
    return root


def _without_any_commit(root: Path) -> Path:
    shutil.rmtree(root / ".git")
    git(root, "init", "-q")
    git(root, "add", "train.py")
    return root


def _detached(root: Path) -> Path:
    git(root, "checkout", "-q", "--detach")
    return root


def _shallow(root: Path) -> Path:
    git(root, "commit", "-q", "-a", "-m", "second")
    other = root.parent / "shallow"
    git(root.parent, "clone", "-q", "--depth", "1", root.as_uri(), str(other))
    return _dirty(other)


def _partial(root: Path) -> Path:
    git(root, "config", "uploadpack.allowFilter", "true")
    other = root.parent / "partial"
    git(root.parent, "clone", "-q", "--filter=blob:none", root.as_uri(), str(other))
    return _dirty(other)


def _sparse(root: Path) -> Path:
    git(root, "checkout", "-q", "--", ".")
    (root / "far").mkdir()
    (root / "far" / "away.py").write_text("f = 1\n")
    git(root, "add", "far")
    git(root, "commit", "-q", "-m", "far")
    git(root, "sparse-checkout", "set", "pkg")
    assert not (root / "far").exists()
    return _dirty(root)


def _in_a_larger_repository(root: Path) -> Path:
    return root / "pkg"


def _linked_worktree(root: Path) -> Path:
    git(root, "worktree", "add", "-q", "-b", "side", str(root.parent / "side"))
    return _dirty(root.parent / "side")


def _submodules(root: Path) -> Path:
    other = root.parent / "library"
    shutil.copytree(root, other, symlinks=True)
    git(root, "submodule", "--quiet", "add", str(other), "sub")
    git(root, "commit", "-q", "-m", "sub")
    (root / "sub" / "train.py").write_text("print('dirty in the submodule')\n")
    (root / "sub" / "untracked.py").write_text("u = 1\n")
    return root


def _a_submodule_itself(root: Path) -> Path:
    return _submodules(root) / "sub"


def _large_file_pointers(root: Path) -> Path:
    (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (root / "weights.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n")
    for name, value in (("filter.lfs.clean", "false"), ("filter.lfs.smudge", "false"), ("filter.lfs.required", "true")):
        git(root, "config", name, value)
    return root


def _nested(root: Path) -> Path:
    shutil.copytree(root, root / "vendor" / "inner", symlinks=True)
    return root


def _no_git(root: Path) -> Path:
    shutil.rmtree(root / ".git")
    return root


def _hostile_names(root: Path) -> Path:
    for name in (
        b"new\nline.py",
        b"-rf",
        b"quo\"te'.py",
        b"back\\slash.py",
        b"\xff\xfe.py",
        b" lead",
        b"tab\t.py",
        b"$(touch x)",
        b":(top)x",
        b"%s{0}",
    ):
        (root / os.fsdecode(name)).write_text("x = 1\n")
    (root / "-d").mkdir()
    (root / "-d" / "--").write_text("")
    git(root, "add", "--", "-rf", "-d")
    return root


def _path_that_is_no_text(root: Path) -> Path:
    return root.rename(root.parent / os.fsdecode(b"caf\xe9"))


def _foreign_owner(root: Path) -> Path:
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
    return root


def _read_only(root: Path) -> Path:
    for path in (*root.rglob("*"), root):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    return root


def _line_endings(root: Path) -> Path:
    git(root, "config", "core.autocrlf", "true")
    (root / ".gitattributes").write_text("*.py text eol=crlf ident\n*.txt working-tree-encoding=UTF-16\n")
    (root / "crlf.py").write_bytes(b"# $Id$\r\na = 1\r\nmixed = 2\n")
    (root / "wide.txt").write_bytes("wide\n".encode("utf-16"))
    git(root, "add", "crlf.py", "wide.txt")
    return root


def _filters(root: Path) -> Path:
    spy = root.parent / "spy"
    (root / ".gitattributes").write_text("*.py filter=spy\n")
    for name in ("clean", "smudge"):
        git(root, "config", f"filter.spy.{name}", f"touch '{spy}'; cat")
    return root


def _hooks_and_signing(root: Path) -> Path:
    for name in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor"):
        (root / ".git" / "hooks" / name).write_text(f"#!/bin/sh\ntouch '{root.parent}/spy'\nexit 1\n")
        (root / ".git" / "hooks" / name).chmod(0o755)
    for name, value in (
        ("commit.gpgSign", "true"),
        ("gpg.program", "/bin/false"),
        ("user.useConfigOnly", "true"),
        ("core.fsmonitor", ".git/hooks/fsmonitor"),
        ("gc.auto", "1"),
    ):
        git(root, "config", name, value)
    return root


def _permissions(root: Path) -> Path:
    for name, mode in (("a", 0o755), ("b", 0o640), ("c", 0o600), ("d", 0o777), ("e", 0o4755)):
        (root / name).write_text("#!/bin/sh\n")
        (root / name).chmod(mode)
    git(root, "config", "core.fileMode", "false")
    return root


def _links_outside(root: Path) -> Path:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "big.bin").write_bytes(b"outside")
    (root / "out").symlink_to(outside)
    (root / "file").symlink_to(outside / "big.bin")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    (root / "data" / "linked").symlink_to(outside)
    return root


def _reached_by_a_link(root: Path) -> Path:
    (root.parent / "way").symlink_to(root)
    return root.parent / "way"


def _in_the_middle_of_a_merge(root: Path) -> Path:
    git(root, "commit", "-q", "-a", "-m", "ours")
    git(root, "checkout", "-q", "-b", "theirs", "HEAD~1")
    (root / "train.py").write_text("print('theirs')\n")
    git(root, "commit", "-q", "-a", "-m", "theirs")
    subprocess.run([*GIT, "merge", "-q", "-"], cwd=root, capture_output=True)
    assert (root / ".git" / "MERGE_HEAD").exists()
    return root


def _flags_in_the_index(root: Path) -> Path:
    git(root, "update-index", "--assume-unchanged", "train.py")
    git(root, "update-index", "--skip-worktree", "pkg/old.py")
    (root / "pkg" / "old.py").write_text("o = 'not seen by git status'\n")
    git(root, "update-index", "--split-index")
    return root


def _packed(root: Path) -> Path:
    git(root, "gc", "-q", "--prune=now")
    return root


def _special_files(root: Path) -> Path:
    os.mkfifo(root / "fifo")
    (root / "empty").mkdir()
    (root / "data" / "closed").mkdir(mode=0o700)
    return root


def _dirty(root: Path) -> Path:
    """A change of the owner's in a repository that has just been made, and data that git ignores."""
    (root / "data").mkdir(exist_ok=True)
    (root / "data" / "x.bin").write_bytes(b"data")
    (root / "pkg" / "old.py").write_text("o = 'dirty'\n")
    return root


KINDS: dict[str, Kind] = {
    name.strip("_").replace("_", " "): kind
    for name, kind in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(kind) and kind is not _dirty and name != "_plain"
} | {"plain": _plain}
