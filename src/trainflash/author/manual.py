"""`--author manual`: the task waits in a folder for whoever answers there, an assistant inside an editor, a person, a test."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from trainflash import git_runner, redact, view
from trainflash.author.answers import Answer, Task, judged
from trainflash.author.commands import Author
from trainflash.errors import UsageError
from trainflash.schema import Sandbox

COPY, PATCH, DONE = "project", "answer.diff", "done"
_OURS = ".trainflash-task"  # marks a folder of ours: what lies in another is not to be touched
_POLL_S = 0.5
_HOW = f"""
## How to answer

Edit the files in `{COPY}/`, which is a throw-away copy, then make an empty file `{DONE}` beside it. Or write a unified diff, as
`git diff` prints it, to `{PATCH}` (under another name first, then renamed). A file `{DONE}` without an edit says that there is no answer.
"""


def wait(
    sandbox: Sandbox,
    author: Author,
    task: Task,
    record: Path,
    minutes: float,
    *,
    on_wait: Callable[[float], None],
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Write the task, say where it lies, and wait for an answer. Raises `UsageError` where the folder cannot be made."""
    place = Path(author.folder or record).absolute()
    copy = place / COPY
    try:
        place.mkdir(parents=True, exist_ok=True)
        if author.folder and any(place.iterdir()) and not (place / _OURS).exists():
            raise UsageError(f"{place} is not empty", "name a new folder for the task: --author manual:FOLDER")
        (place / _OURS).touch()
        for left in (PATCH, DONE):
            (place / left).unlink(missing_ok=True)
        shutil.rmtree(copy, ignore_errors=True)
        before = view.copied(sandbox, copy)
        for name, text in task.as_files().items():
            told = redact.text(text) + _HOW * (name == "BRIEF.md")
            (place / name).write_text(told, encoding="utf-8", errors="surrogateescape")
    except OSError as bad:
        raise UsageError(f"{bad.filename}: {bad.strerror}", "name another folder: --author manual:FOLDER") from None
    try:
        say(f"the task is in {place}: read BRIEF.md there; at most {minutes:g} min")
        began = clock()
        seen = None
        while not (place / DONE).exists():
            seen, before_it = _written(place / PATCH), seen
            if seen is not None and seen == before_it:
                break
            on_wait(clock() - began)
            if clock() - began > 60 * minutes:
                return Answer("failed", f"nobody answered in {place} within {minutes:g} min")
            sleep(_POLL_S)
        if (place / PATCH).is_file() and (wrong := _applied(place / PATCH, copy / sandbox.prefix)):
            return Answer("failed", wrong)
        return judged(sandbox, view.changes_in(sandbox, copy, before), task.files, "")
    finally:
        if not author.folder:  # in the sandbox: the patch is kept, and the copy is a copy
            shutil.rmtree(copy, ignore_errors=True)


def _written(patch: Path) -> tuple[int, int] | None:
    """Size and time of a patch; it is whole where both stay as they are from one look to the next. None: there is none yet."""
    try:
        found = patch.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _applied(patch: Path, folder: Path) -> str:
    """Apply a patch in a folder that is no repository; why it does not apply, "": it did."""
    data = patch.read_bytes()
    if not data.strip():
        return f"{PATCH} is empty"
    answer = git_runner.execute(["apply", "-p1", "-"], folder, environment={"GIT_CEILING_DIRECTORIES": str(folder.parent)}, stdin=data)
    if answer.code == 0:
        return ""
    said = answer.err.strip().splitlines() or [f"exit code {answer.code}"]
    return f"{PATCH} does not apply: {said[0].removeprefix('error: ')}"
