"""Runs git so that nothing of the owner's settings can write, ask, sign, convert or start a program.

Every call names its repository, work tree and index, so a `GIT_DIR` of a surrounding hook has no say; optional locks are off,
so that reading never refreshes the owner's index. The owner's ignore rules (also the global ones) stay in force.
"""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.errors import UsageError

_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.autocrlf=false", "core.safecrlf=false", "core.quotePath=false",
    "core.logAllRefUpdates=false", "core.splitIndex=false", "core.untrackedCache=false", "core.attributesFile=/dev/null",
    "core.fileMode=true", "core.symlinks=true", "commit.gpgSign=false", "gc.auto=0", "maintenance.auto=false",
    "submodule.recurse=false", "apply.whitespace=nowarn", "apply.ignoreWhitespace=false", "diff.noprefix=false",
    "diff.mnemonicPrefix=false", "worktree.useRelativePaths=false", "diff.orderFile=/dev/null", "safe.directory=*",
    "advice.detachedHead=false",
)  # fmt: skip
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "trainflash"), ("EMAIL", "trainflash@localhost"))
}
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
    **_IDENTITY,
}
_BATCH_BYTES = 64 << 20


@dataclass(frozen=True)
class TreeEntry:
    """One file of a tree: `mode` as git writes it ("100644", "100755", "120000", "160000"), `size` in bytes."""

    mode: str
    oid: str
    size: int


@dataclass(frozen=True)
class Git:
    """One repository with the work tree and the index (None: the repository's own) that calls use."""

    git_dir: str
    work_tree: str
    index: str | None = None

    def with_index(self, index: Path) -> Git:
        """The same with another index file; the repository's own is then neither read nor written."""
        return replace(self, index=str(index))

    def run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """Standard output of `git ARGUMENTS`. Raises `UsageError` with git's first line of complaint."""
        code, out, err = self.attempt(*arguments, stdin=stdin)
        if code:
            said = err.strip().splitlines() or [f"exit code {code}"]
            raise UsageError(f"git {arguments[0]}: {said[0]}", f"check the repository: git -C {self.work_tree} status")
        return out

    def text(self, *arguments: str, stdin: bytes | None = None) -> str:
        """Standard output without the last newline, as a path-safe string."""
        return os.fsdecode(self.run(*arguments, stdin=stdin)).removesuffix("\n")

    def attempt(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, bytes, str]:
        """Exit code, standard output and standard error, whatever they are."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        where = [f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}"]
        extra = {"GIT_INDEX_FILE": self.index} if self.index else {}
        with _shared_index_kept(self.git_dir):
            return execute(["git", *settings, *where, *arguments], self.work_tree, extra, stdin)

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
        out = self.run("cat-file", "--batch", stdin="".join(f"{entry.oid}\n" for entry in batch).encode())
        at = 0
        for entry in batch:
            start = out.index(b"\n", at) + 1
            if out[at:start].rstrip().endswith(b"missing"):
                raise UsageError(f"object {entry.oid} is gone from {self.git_dir}", "create the sandbox anew: trainflash sandbox discard")
            at = start + int(out[at:start].split()[2])
            yield entry, out[start:at]
            at += 1


@contextlib.contextmanager
def _shared_index_kept(git_dir: str) -> Iterator[None]:
    """Git sets the time of the shared half of a split index whenever it reads it; here it gets its own back."""
    shared = [(path, os.stat(path)) for path in glob.glob(os.path.join(glob.escape(git_dir), "sharedindex.*"))]
    yield
    for path, facts in shared:
        with contextlib.suppress(OSError):
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def execute(command: Sequence[str], cwd: str, extra: dict[str, str], stdin: bytes | None = None) -> tuple[int, bytes, str]:
    """Run git with a cleaned environment: all of the caller's own `GIT_*` variables are taken away first."""
    try:
        import git
    except ImportError:
        raise UsageError("git is not installed or not on PATH", "install git 2.30 or newer") from None
    foreign = [f"-u{name}" for name in os.environ if name.startswith("GIT_")]
    own = [f"{name}={value}" for name, value in {**_ENVIRONMENT, **extra}.items()] if foreign else []
    with tempfile.TemporaryFile() as source:
        source.write(stdin or b"")
        source.seek(0)
        return git.Git(cwd).execute(
            ["env", *foreign, *own, *command] if foreign else list(command),
            env={**_ENVIRONMENT, **extra},
            istream=source,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )  # type: ignore[return-value]


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
    code, out, _ = execute(["git", "-c", "safe.directory=*", "rev-parse", *questions], str(project), {})
    return code, os.fsdecode(out).removesuffix("\n").split("\n")


def common_dir(repository: Git) -> Path:
    """The folder that all worktrees of a repository share; gitrepository-layout(5) says where that stands."""
    try:
        said = Path(repository.git_dir, "commondir").read_bytes()
    except FileNotFoundError:
        return Path(repository.git_dir).resolve()
    return Path(repository.git_dir, os.fsdecode(said.rstrip(b"\n"))).resolve()
