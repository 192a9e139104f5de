"""What verbs share: the call, and how arguments are annotated: the type, a sentence, and for numbers (least, most)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from trainflash import config
from trainflash.errors import UsageError
from trainflash.mcp_server.roots import Roots
from trainflash.workflow.phases.sessions import state_folder

OnProgress = Callable[[str, int, int], None]

Project = Annotated[str | None, "The project's directory, below the server's roots. Default: the first root."]
Sandbox = Annotated[str | None, "Work in this sandbox directory. Default: the project's newest, else a new one."]
Command = Annotated[
    list[str] | None,
    'The training command as words, such as ["python", "train.py"]. Default: `command` in trainflash.toml; in optimize_* else the last.',
]
Budget = Annotated[str | None, "Time at most, such as 90s, 20m or 1.5h."]
Allow = Annotated[
    str | None,
    "Changes that the owner agrees to by name, comma-separated: order, precision, cadence, schedule, batch, shape, coverage, evaluation. "
    "Ask the owner first.",
]

Exact = Annotated[bool, "Refuse what is not equal to the last bit; without it, rounding within the program's own noise is the same."]


@dataclass(frozen=True)
class Call:
    """Who asks: which paths may be named, and where progress goes."""

    roots: Roots
    on_progress: OnProgress

    def settings(self, project: str | None, sandbox: str | None) -> config.Settings:
        """The settings of the project that is meant."""
        return config.load(self.roots.settings_of(project, sandbox))

    def existing(self, project: str | None, sandbox: str | None) -> Any:
        """The session of a sandbox that there is."""
        return self.roots.session(project, sandbox, self.on_progress)

    def any_session(self, project: str | None, sandbox: str | None, *, as_it_is: bool = True) -> Any:
        """The session of the sandbox that there is, else of a new one; `as_it_is`: whether it matters that the project was edited since."""
        return self.roots.session_or_new(project, sandbox, self.on_progress, as_it_is=as_it_is)

    def project(self, project: str | None, sandbox: str | None) -> Path:
        """The directory of the project that is meant."""
        return self.roots.settings_of(project, sandbox)

    def sandbox(self, named: str | None) -> Path | None:
        """The sandbox directory that is named, if any."""
        return self.roots.inside(named, also_state=True) if named else None

    def command(self, typed: Sequence[str] | None, project: str | None, sandbox: str | None) -> Any:
        """The training command, else the one of the settings, else the last one of the sandbox that is meant."""
        from trainflash.workflow import inputs

        return inputs.command(words(typed), self.settings(project, sandbox), self.project(project, None), self.sandbox(sandbox))

    def file(self, named: str) -> Path:
        """A file or directory to read, below the roots or in trainflash's own folder."""
        return self.roots.tree(named)


@dataclass(frozen=True)
class Verb:
    """One tool. `shape` names its document in `workflow.shapes`; `long` work runs in a worker and can be cancelled."""

    name: str
    function: Callable[..., dict[str, Any]]
    title: str
    shape: str
    long: bool = False
    reads_only: bool = False


def seconds(budget: str | None) -> float | None:
    """A budget in seconds. Raises `UsageError` for what is no duration."""
    try:
        return None if budget is None else config.parse_duration(budget)
    except ValueError:
        raise UsageError(f"{budget!r} is no duration", "write 90s, 20m or 1.5h") from None


def words(command: Sequence[str] | None) -> tuple[str, ...]:
    """The command's words. Raises `UsageError` for a word that no program can be given."""
    found = tuple(command or ())
    if any("\0" in word for word in found):
        raise UsageError("a word of the command holds a NUL", "leave it out")
    return found


def own_file(folder: str, kind: str, suffix: str) -> Path:
    """A new file in trainflash's own folder: nothing is written where a client says."""
    place = state_folder() / folder
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, path = tempfile.mkstemp(dir=place, prefix=f"{kind}-", suffix=suffix)
    os.close(handle)
    return Path(path)


@contextmanager
def reserved_file(folder: str, kind: str, suffix: str) -> Iterator[Path]:
    """`own_file` for what is written later, perhaps by a job; where nothing came of it, it is gone."""
    path = own_file(folder, kind, suffix)
    try:
        yield path
    finally:
        if path.exists() and path.stat().st_size == 0:
            path.unlink()
