"""The sandbox in which the gate looks at the project as it is now, without disturbing one that holds somebody's experiments."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from trainflash import sandbox as sandboxes
from trainflash.workflow import session as sessions
from trainflash.workflow.session import OnProgress, Session


@contextlib.contextmanager
def as_it_is(project: Path, on_progress: OnProgress) -> Iterator[Session]:
    """The project's newest sandbox where it holds the project as it is and nothing unfinished, a new one where there is none.

    Else one for this command alone, which is gone afterwards. It is locked, and left as it was found.
    """
    known = sandboxes.newest(project)
    passing = None
    if known is None:
        session = sessions.create(project, on_progress=on_progress)
    else:
        session = Session(known, on_progress)
        if session.dirty() or sandboxes.drifted(known):
            passing = sandboxes.state_folder() / "gate" / hashlib.sha256(f"{project}\0{os.getpid()}".encode()).hexdigest()[:12]
            session = sessions.create(project, passing, on_progress=on_progress)
    try:
        with session.locked():
            try:
                yield session
            finally:
                session.rest()
    finally:
        if passing is not None:
            session.discard(everything=True)
            with contextlib.suppress(OSError):
                passing.rmdir()
