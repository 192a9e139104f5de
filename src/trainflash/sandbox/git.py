"""Git in one repository of the owner's or of ours: commits, trees and files as they are stored, however the owner has set git up."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import git_runner

_SETTINGS = (
    "core.autocrlf=false", "core.quotePath=false", "core.logAllRefUpdates=false", "core.attributesFile=/dev/null",
    "core.fileMode=true", "core.symlinks=true", "commit.gpgSign=false", "submodule.recurse=false", "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=false", "diff.noprefix=false", "diff.mnemonicPrefix=false", "worktree.useRelativePaths=false",
    "diff.orderFile=/dev/null", "advice.detachedHead=false",
)  # fmt: skip
_ATTRIBUTES_OF_TREES_ALONE = {"GIT_ATTR_NOSYSTEM": "1"}
_BATCH_BYTES = 64 << 20
_GONE = "create the sandbox anew: trainflash sandbox discard"


@dataclass(frozen=True)
class TreeEntry:
    """One file of a tree: `mode` as git writes it ("100644", "100755", "120000", "160000"), `size` in bytes."""

    mode: str
    oid: str
    size: int


@dataclass(frozen=True)
class Git(git_runner.Verbs):
    """One repository with the work tree and the index (None: the repository's own) that calls use."""

    git_dir: str
    work_tree: str
    index: str | None = None

    def with_index(self, index: Path) -> Git:
        """The same with another index file; the repository's own is then neither read nor written."""
        return replace(self, index=str(index))

    @property
    def mend(self) -> str:
        return f"check the repository: git -C {self.work_tree} status"

    def ask(self, words: Sequence[str], stdin: bytes) -> git_runner.Answer:
        index = {"GIT_INDEX_FILE": self.index} if self.index else {}
        return git_runner.execute(
            [f"--work-tree={self.work_tree}", *words],
            self.work_tree,
            settings=_SETTINGS,
            environment={**_ATTRIBUTES_OF_TREES_ALONE, **index},
            stdin=stdin,
            git_dir=self.git_dir,
        )

    def tree(self, commit: str) -> dict[str, TreeEntry]:
        """Every file of a commit or tree by its path."""
        entries = {}
        for line in self.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0")[:-1]:
            facts, path = line.split(b"\t", 1)
            mode, _, oid, size = facts.decode().split()
            entries[os.fsdecode(path)] = TreeEntry(mode, oid, int(size) if size.isdigit() else 0)
        return entries

    def blobs(self, wanted: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, bytes]]:
        """Each entry with its content, as stored (no filter, no line-ending conversion); at most 64 MiB are held at once."""
        batch: list[TreeEntry] = []
        held = 0
        for entry in wanted:
            if batch and held + entry.size > _BATCH_BYTES:
                yield from self._read(batch)
                batch, held = [], 0
            batch.append(entry)
            held += entry.size
        if batch:
            yield from self._read(batch)

    def _read(self, batch: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, bytes]]:
        yield from zip(batch, self.contents([entry.oid for entry in batch], _GONE), strict=True)


def discover(project: Path) -> Git | None:
    """The repository that the project belongs to, as the owner's git sees it; None where the project is in none.

    A project of which an enclosing repository tracks nothing (a repository of dot files in HOME, an ignored folder) counts as in none.
    """
    code, answers = _ask(project, "--absolute-git-dir", "--show-toplevel")
    if code:
        return None
    if len(answers) != 2:  # a path with a line break in it
        answers = ["\n".join(_ask(project, question)[1]) for question in ("--absolute-git-dir", "--show-toplevel")]
    git_dir, root = answers
    repository = Git(git_dir, root)
    if Path(root) != project and not repository.run("ls-files", "-z", "--", str(project)):
        return None
    return repository


def _ask(project: Path, *questions: str) -> tuple[int, list[str]]:
    """Exit code and lines of `git rev-parse`."""
    answer = git_runner.execute(["rev-parse", *questions], project)
    return answer.code, os.fsdecode(answer.out).removesuffix("\n").split("\n")


def common_dir(repository: Git) -> Path:
    """The folder that all worktrees of a repository share; gitrepository-layout(5) says where that stands."""
    try:
        said = Path(repository.git_dir, "commondir").read_bytes()
    except FileNotFoundError:
        return Path(repository.git_dir).resolve()
    return Path(repository.git_dir, os.fsdecode(said.rstrip(b"\n"))).resolve()
