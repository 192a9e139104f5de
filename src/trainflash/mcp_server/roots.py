"""Which paths a client may name: those that lie, links followed, below the roots that the owner gave."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.workflow.phases.sessions import state_folder
from trainflash.workflow.session import Session, existing_session, open_session
from trainflash.workflow.session import project_of as owner_of

VARIABLE = "TRAINFLASH_MCP_ROOTS"  # several are divided as in PATH
LONGEST = 4096


@dataclass(frozen=True)
class Roots:
    """Directories with links resolved. The first is what a client means that names no project."""

    places: tuple[Path, ...]

    def inside(self, named: str, *, also_state: bool = False) -> Path:
        """`named`, absolute or relative to the first root, with all links resolved. Raises `UsageError` where it lies outside.

        `also_state`: what trainflash itself keeps in its state folder may be named too.
        """
        if not named or "\0" in named or len(named) > LONGEST:
            raise UsageError("that is no path", "name a file or folder below the server's roots")
        if not self.places:
            raise UsageError("this server has no root: no path can be used", f"start it with --root DIR, or set {VARIABLE}")
        try:
            found = Path(os.path.realpath(self.places[0] / named))
        except (OSError, ValueError):
            raise UsageError("that is no path", "name a file or folder below the server's roots") from None
        allowed = (*self.places, state_folder().resolve()) if also_state else self.places
        if not any(found == place or place in found.parents for place in allowed):
            raise UsageError(
                f"{_shown(named)} lies outside of the server's roots", f"roots: {', '.join(map(str, self.places))}; --root adds one"
            )
        return found

    def tree(self, named: str) -> Path:
        """A file to read, or a directory whose links stay inside too."""
        found = self.inside(named, also_state=True)
        for path in found.rglob("*") if found.is_dir() else ():
            if path.is_symlink():
                self.inside(str(path), also_state=True)
        return found

    def project(self, named: str | None) -> Path:
        """The project that is meant: an existing directory below the roots."""
        found = self.inside(named or ".")
        if not found.is_dir():
            raise UsageError(f"{_shown(named or '.')} is no directory", "name the project's directory")
        return found

    def session(self, project: str | None, sandbox: str | None, on_progress: object) -> Session:
        """The sandbox named, else the newest of the project. Raises `UsageError` when there is none, or its project lies outside."""
        return self._own(existing_session(self._project(project, sandbox), self._sandbox(sandbox), on_progress=on_progress))

    def session_or_new(self, project: str | None, sandbox: str | None, on_progress: object, *, as_it_is: bool = True) -> Session:
        """The same, or a new sandbox of the project; `as_it_is`: whether it matters that the project was edited since."""
        place = self._project(project, sandbox)
        return self._own(open_session(place, self._sandbox(sandbox), on_progress=on_progress, as_it_is=as_it_is)[0])

    def settings_of(self, project: str | None, sandbox: str | None) -> Path:
        """The project whose settings hold."""
        found = owner_of(self._project(project, sandbox), self._sandbox(sandbox))
        return self.inside(str(found))

    def _project(self, project: str | None, sandbox: str | None) -> Path:
        return self.project(project) if project or not sandbox else self.places[0] if self.places else self.project(None)

    def _sandbox(self, sandbox: str | None) -> Path | None:
        return self.inside(sandbox, also_state=True) if sandbox else None

    def _own(self, session: Session) -> Session:
        self.inside(session.sandbox.project)
        return session


def chosen(given: Sequence[str | Path], environment: str = "") -> Roots:
    """The roots on the command line, else those of the environment, else the working directory, unless that is the whole machine.

    Raises `UsageError` for one that is no directory.
    """
    named = [str(each) for each in given] or [each for each in environment.split(os.pathsep) if each]
    if not named:
        here = Path.cwd().resolve()
        return Roots(() if here == Path(here.anchor) else (here,))
    places = []
    for each in named:
        place = Path(os.path.realpath(os.path.expanduser(each)))
        if not place.is_dir():
            raise UsageError(f"the root {each} is no directory", "name existing directories")
        places.append(place)
    return Roots(tuple(dict.fromkeys(places)))


def _shown(named: str) -> str:
    text = ascii(named)[1:-1]
    return text if len(text) <= 200 else f"{text[:197]}..."
