"""A change as the owner's own `git add` would store it: line endings, encodings, filters and executable bits as the repository has them.

The sandbox's commits hold files as they lie on disk; a branch holds what git makes of them. So git makes it here too, by the owner's
settings and attributes, with an index, a work tree and a place for objects of our own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.schema import Sandbox
from trainflash.writeback.content import Content
from trainflash.writeback.git import Git, OwnersGit

Committed = tuple[str, Content | None, Content | None]  # path relative to the project, before, after
_ATTRIBUTES = ".gitattributes"
_LEAVE = "leave --branch away and commit it yourself"


def as_stored(sandbox: Sandbox, parent: str, committed: Sequence[Committed]) -> list[Committed]:
    """The same changes in the form that commits of the owner's repository have. `parent`: the commit that they are put on.

    Raises `UsageError` where a filter of the owner's fails, and for files of LFS, whose filter stores their content.
    """
    sides = []
    for number in (1, 2):
        files = {os.path.join(sandbox.prefix, one[0]): one[number] for one in committed if one[number] is not None}
        sides.append(_stored(sandbox, parent, files))
    return [
        (one[0], *(side.get(os.path.join(sandbox.prefix, one[0])) if one[1 + number] else None for number, side in enumerate(sides)))
        for one in committed
    ]


def _stored(sandbox: Sandbox, parent: str, files: Mapping[str, Content]) -> dict[str, Content]:
    """What the index of the repository would hold of `files` (paths relative to it) after `git add`."""
    if not files:
        return {}
    owners = Git(sandbox.repository)
    with tempfile.TemporaryDirectory(dir=sandbox.directory, prefix="index-") as folder:
        tree, objects = Path(folder, "tree"), Path(folder, "objects")
        objects.mkdir()
        _lay_out(Path(sandbox.repository), tree, files)
        git = OwnersGit(
            str(tree),
            git_dir=owners.text("rev-parse", "--absolute-git-dir"),
            index=os.path.join(folder, "index"),
            objects=str(objects),
            borrowed=os.path.realpath(os.path.join(sandbox.repository, owners.text("rev-parse", "--git-path", "objects"))),
        )
        names = b"".join(os.fsencode(path) + b"\0" for path in files)
        git.run("read-tree", parent)
        _refuse_lfs(git, names)
        code, _, said = git.attempt("update-index", "--add", "--replace", "-z", "--stdin", stdin=names)
        if code:
            raise UsageError(f"git add refuses the change: {(said.strip().splitlines() or ['no reason given'])[-1]}", _LEAVE)
        entries = {}
        for line in git.run("ls-files", "-z", "-s").split(b"\0")[:-1]:
            facts, name = line.split(b"\t", 1)
            if os.fsdecode(name) in files:
                entries[os.fsdecode(name)] = facts.decode().split()[:2]
        data = git.contents([oid for _, oid in entries.values()])
        return {path: Content(mode, content) for (path, (mode, _)), content in zip(entries.items(), data, strict=True)}


def _lay_out(repository: Path, tree: Path, files: Mapping[str, Content]) -> None:
    """The files, beneath the attributes that the owner's work tree has for them."""
    for folder in {str(parent) for path in files for parent in Path(path).parents}:
        (tree / folder).mkdir(parents=True, exist_ok=True)
        attributes = repository / folder / _ATTRIBUTES
        if attributes.is_file() and not attributes.is_symlink():
            (tree / folder / _ATTRIBUTES).write_bytes(attributes.read_bytes())
    for path, content in files.items():
        if content.kind == "120000":
            os.symlink(content.data, os.fsencode(tree / path))
        else:
            (tree / path).write_bytes(content.data)
            (tree / path).chmod(0o755 if content.kind == "100755" else 0o644)


def _refuse_lfs(git: Git, names: bytes) -> None:
    parts = git.run("check-attr", "-z", "--stdin", "filter", stdin=names).split(b"\0")[:-1]
    for path, value in zip(parts[::3], parts[2::3], strict=True):
        if value == b"lfs":
            raise UsageError(f"{os.fsdecode(path)} is stored by git LFS", _LEAVE)
