"""Reads the sandbox's commits, untouched by the owner's settings and by a surrounding hook's variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from trainflash import git_runner
from trainflash.writeback.content import Content

_SETTINGS = (
    "core.autocrlf=false", "core.quotePath=false", "core.attributesFile=/dev/null", "diff.noprefix=false", "diff.mnemonicPrefix=false",
    "diff.orderFile=/dev/null", "diff.context=3", "diff.interHunkContext=0", "diff.algorithm=myers", "diff.indentHeuristic=true",
)  # fmt: skip
_OWNERS = ("core.sparseCheckout=false", "index.sparse=false")


@dataclass(frozen=True)
class Git(git_runner.Verbs):
    """Git in `folder`; with `git_dir`, in that repository alone; with `index`, with that file for an index."""

    folder: str
    git_dir: str = ""
    index: str = ""

    settings: ClassVar[tuple[str, ...]] = _SETTINGS
    mend: ClassVar[str] = "the sandbox is damaged: discard it and make a new one"

    def ask(self, words: Sequence[str], stdin: bytes) -> git_runner.Answer:
        return git_runner.execute(
            words, self.folder, settings=self.settings, environment=self.environment(), stdin=stdin, git_dir=self.git_dir
        )

    def environment(self) -> dict[str, str]:
        return {"GIT_INDEX_FILE": self.index} if self.index else {}


@dataclass(frozen=True)
class OwnersGit(Git):
    """Git with the owner's own settings, in the work tree `folder`; what it stores goes into `objects`, not among those `borrowed`."""

    objects: str = ""
    borrowed: str = ""

    settings: ClassVar[tuple[str, ...]] = _OWNERS

    def environment(self) -> dict[str, str]:
        places = {
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self.borrowed).decode(errors="surrogateescape"),
        }
        return {"GIT_CONFIG_NOSYSTEM": "0", **places, "GIT_INDEX_FILE": self.index, "GIT_WORK_TREE": self.folder}


def difference(folder: Path, before: Mapping[str, Content], after: Mapping[str, Content]) -> bytes:
    """Unified diff between two states of some files, binary and mode changes included, by a repository in the empty `folder`."""
    for path in (folder / "objects", folder / "refs"):
        path.mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/before\n")
    git = Git(str(folder), str(folder))
    parts = []
    for name, files in (("before", before), ("after", after)):
        parts.append(b"commit refs/heads/%s\ncommitter t <t@localhost> 0 +0000\ndata 0\n\n" % name.encode())
        parts += [
            b"M %s inline %s\ndata %d\n%s\n" % (content.kind.encode(), _quoted(path), len(content.data), content.data)
            for path, content in files.items()
        ]
    git.run("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", stdin=b"".join(parts))
    form = ("-p", "-r", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    return git.run("diff-tree", *form, "refs/heads/before", "refs/heads/after")


def _quoted(path: str) -> bytes:
    """A path as `git fast-import` reads it."""
    escaped = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
