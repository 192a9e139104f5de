"""Starts git, for everybody here: no hook, no program of the owner's settings, no question, and no index refreshed by a look.

Each call begins with none of the caller's own `GIT_*` variables, so that a surrounding hook's `GIT_DIR` has no say. The owner's ignore
rules (also the global ones) stay in force. What a caller needs beyond that it gives as `settings` and `environment`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError

_HARMLESS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.splitIndex=false", "core.untrackedCache=false", "core.safecrlf=false",
    "gc.auto=0", "maintenance.auto=false", "safe.directory=*",
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
    "LC_ALL": "C",
    **_IDENTITY,
}


@dataclass(frozen=True)
class Answer:
    """What git said: exit code, standard output, standard error."""

    code: int
    out: bytes
    err: str

    def or_raise(self, verb: str, mend: str) -> bytes:
        """Standard output; raises `UsageError` with git's first line of complaint about `git VERB` where it failed."""
        if self.code:
            said = self.err.strip().splitlines() or [f"exit code {self.code}"]
            raise UsageError(f"git {verb}: {said[0]}", mend)
        return self.out


class Verbs:
    """What can be asked of a repository, in terms of one `ask`; `mend` is the hint where git complains."""

    mend: str

    def ask(self, words: Sequence[str], stdin: bytes) -> Answer:
        """`git WORDS` in this repository, whatever it ends with."""
        raise NotImplementedError

    def run(self, *words: str, stdin: bytes = b"") -> bytes:
        """Standard output. Raises `UsageError` with git's first line of complaint."""
        return self.ask(words, stdin).or_raise(words[0], self.mend)

    def text(self, *words: str, stdin: bytes = b"") -> str:
        """Standard output without the last newline, as a path-safe string."""
        return os.fsdecode(self.run(*words, stdin=stdin)).removesuffix("\n")

    def attempt(self, *words: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Exit code, standard output and standard error, whatever they are."""
        answer = self.ask(words, stdin)
        return answer.code, answer.out, answer.err

    def contents(self, oids: Sequence[str], mend: str = "") -> list[bytes]:
        """The content of each object, as stored (no filter, no line-ending conversion). Raises `UsageError` for one that is gone."""
        out = self.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode()) if oids else b""
        return list(_objects(out, oids, mend or self.mend))


def execute(
    words: Sequence[str],
    folder: str | Path,
    *,
    settings: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    git_dir: str = "",
    timeout_s: float | None = None,
) -> Answer:
    """`git WORDS` in `folder`, whatever it ends with. `git_dir`: that repository, "": the one that git finds from there.

    Raises `UsageError` where git or the folder is not there, and `subprocess.TimeoutExpired` after `timeout_s` seconds.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    given = [part for setting in (*_HARMLESS, *settings) for part in ("-c", setting)]
    where = [f"--git-dir={git_dir}"] if git_dir else []
    with _shared_index_kept(git_dir or _found_from(Path(folder))):
        try:
            done = subprocess.run(
                ["git", *given, *where, *words],
                cwd=folder,
                env={**clean, **_ENVIRONMENT, **(environment or {})},
                input=stdin,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except FileNotFoundError as bad:
            if Path(folder).is_dir():
                raise UsageError("git is not installed or not on PATH", "install git 2.30 or newer") from None
            raise UsageError(f"{folder}: {bad.strerror}", "restore the folder, or discard its sandbox") from None
        except OSError as bad:
            raise UsageError(f"{folder}: {bad.strerror}", "restore the folder, or discard its sandbox") from None
    return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def _objects(batch: bytes, oids: Sequence[str], mend: str) -> Iterator[bytes]:
    """The content of each of `oids`, out of what `git cat-file --batch` said of them. Raises `UsageError` for one that is gone."""
    at = 0
    for oid in oids:
        start = batch.index(b"\n", at) + 1
        facts = batch[at:start].split()
        if len(facts) != 3:
            raise UsageError(f"object {oid} is gone", mend)
        end = start + int(facts[2])
        yield batch[start:end]
        at = end + 1


def _found_from(folder: Path) -> str:
    """The folder of the repository that `folder` is in, as gitrepository-layout(5) says; "" where it is in none."""
    for at in (folder, *folder.absolute().parents):
        found = at / ".git"
        if found.is_dir():
            return str(found)
        with contextlib.suppress(OSError):
            return os.path.join(at, os.fsdecode(found.read_bytes()).removeprefix("gitdir:").strip())
    return ""


@contextlib.contextmanager
def _shared_index_kept(git_dir: str) -> Iterator[None]:
    """Git sets the time of the shared half of a split index whenever it reads it; here it gets its own back."""
    shared = [(path, path.stat()) for path in Path(git_dir).glob("sharedindex.*")] if git_dir else []
    yield
    for path, facts in shared:
        with contextlib.suppress(OSError):
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
