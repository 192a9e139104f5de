"""Reads the sandbox's commits, untouched by the owner's settings and by a surrounding hook's variables."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from trainflash.errors import UsageError
from trainflash.writeback.content import Content

_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.autocrlf=false", "core.safecrlf=false", "core.quotePath=false",
    "core.attributesFile=/dev/null", "diff.noprefix=false", "diff.mnemonicPrefix=false", "diff.orderFile=/dev/null",
    "diff.context=3", "diff.interHunkContext=0", "diff.algorithm=myers", "diff.indentHeuristic=true", "gc.auto=0", "safe.directory=*",
)  # fmt: skip
_HARMLESS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.safecrlf=false", "core.sparseCheckout=false", "index.sparse=false",
    "core.splitIndex=false", "core.untrackedCache=false", "gc.auto=0", "safe.directory=*",
)  # fmt: skip
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "trainflash"), ("EMAIL", "trainflash@localhost"))
}


@dataclass(frozen=True)
class Git:
    """Git in `folder`; with `git_dir`, in that repository alone; with `index`, with that file for an index."""

    folder: str
    git_dir: str = ""
    index: str = ""

    settings: ClassVar[tuple[str, ...]] = _SETTINGS

    def path(self, *arguments: str) -> str:
        """Standard output that is a path."""
        return os.fsdecode(self.run(*arguments)).removesuffix("\n")

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Standard output. Raises `UsageError` with git's first line of complaint."""
        code, out, err = self.attempt(*arguments, stdin=stdin)
        if code:
            said = err.strip().splitlines() or [f"exit code {code}"]
            raise UsageError(f"git {arguments[0]}: {said[0]}", "the sandbox is damaged: discard it and make a new one")
        return out

    def text(self, *arguments: str, stdin: bytes = b"") -> str:
        """Standard output without the last newline."""
        return self.run(*arguments, stdin=stdin).decode().removesuffix("\n")

    def attempt(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Exit code, standard output and standard error, whatever they are."""
        try:
            import git
        except ImportError:
            raise UsageError("git is not installed or not on PATH", "install git 2.30 or newer") from None
        foreign = [f"-u{name}" for name in os.environ if name.startswith("GIT_")]
        own = self.environment()
        cleaned = ["env", *foreign, *(f"{name}={value}" for name, value in own.items())] if foreign else []
        settings = [part for setting in self.settings for part in ("-c", setting)]
        where = [f"--git-dir={self.git_dir}"] if self.git_dir else []
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            return git.Git(self.folder).execute(
                [*cleaned, "git", *settings, *where, *arguments],
                env=own,
                istream=source,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
            )  # type: ignore[return-value]

    def environment(self) -> dict[str, str]:
        return {**_ENVIRONMENT, **_IDENTITY, **({"GIT_INDEX_FILE": self.index} if self.index else {})}

    def blobs(self, oids: Sequence[str]) -> list[bytes]:
        """The content of each object, as stored (no filter, no line-ending conversion)."""
        out, at, found = self.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode()) if oids else b"", 0, []
        for oid in oids:
            start = out.index(b"\n", at) + 1
            facts = out[at:start].split()
            if len(facts) != 3:
                raise UsageError(f"object {oid} is gone", "the sandbox is damaged: discard it and make a new one")
            at = start + int(facts[2])
            found.append(out[start:at])
            at += 1
        return found


@dataclass(frozen=True)
class OwnersGit(Git):
    """Git with the owner's own settings, in the work tree `folder`; what it stores goes into `objects`, not among those `borrowed`."""

    objects: str = ""
    borrowed: str = ""

    settings: ClassVar[tuple[str, ...]] = _HARMLESS

    def environment(self) -> dict[str, str]:
        places = {
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self.borrowed).decode(errors="surrogateescape"),
        }
        usual = {name: value for name, value in _ENVIRONMENT.items() if name != "GIT_CONFIG_NOSYSTEM"}
        return {**usual, **places, "GIT_INDEX_FILE": self.index, "GIT_WORK_TREE": self.folder}


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
