"""One start of an author's command in a room: it gets the brief, writes, and is ended; what it left is taken and judged by rules."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainflash import launch, redact, view
from trainflash.author import manual, told
from trainflash.author.answers import Answer, Limits, Task, judged
from trainflash.author.commands import Author
from trainflash.launch.process import Identity
from trainflash.schema import Command, Sandbox

MOST_WRITTEN = 1 << 30  # bytes that one attempt may write: a cloned model or a cache is no patch
MOST_PRINTED = 64 << 20  # bytes of a transcript
_POLL_S = 0.2
_LOOK_EVERY_S = 1.0  # at what it has written


def write(
    sandbox: Sandbox,
    author: Author,
    task: Task,
    folder: Path,
    limits: Limits,
    *,
    on_wait: Callable[[float], None] = lambda seconds: None,
    say: Callable[[str], None] = lambda line: None,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Let the author answer `task` on the state in `worktree/`; what it prints goes to `folder`, which is made, without secrets.

    Raises `UsageError` where nothing here protects the project. Ctrl-C ends the whole process tree and is raised again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in task.as_files().items():
        (folder / name).write_text(redact.text(text), encoding="utf-8", errors="surrogateescape")
    began = clock()
    if author.by_hand:
        answer = manual.wait(sandbox, author, task, folder, limits.minutes, on_wait=on_wait, say=say, clock=clock)
        return replace(answer, minutes=(clock() - began) / 60)
    room = view.open_room(sandbox, task.as_files(), author.state())
    try:
        return _started(room, author, task, folder, limits, on_wait, clock)
    finally:
        room.close()


def _started(
    room: view.Room, author: Author, task: Task, folder: Path, limits: Limits, on_wait: Callable[[float], None], clock: Callable[[], float]
) -> Answer:
    words = author.words(
        brief=os.path.join(room.task, "BRIEF.md"), folder=room.project, files=task.files, dollars=limits.dollars, minutes=limits.minutes
    )
    environment = author.environment(os.environ) | room.env
    given = folder / "BRIEF.md"
    command = Command(tuple(words))
    process = launch.Process(room, Identity("author", command, "candidate"), folder, environment, clean=redact.text, stdin=given)
    began = clock()
    try:
        stopped = _until_over(process, room, folder, limits, on_wait, clock)
        process.kill()
        minutes = (clock() - began) / 60
        changes = room.changes()
        returncode = process.returncode
    finally:
        process.finish()
    answer = judged(room.sandbox, changes, task.files, told.read(folder / "output.log"), stopped, returncode)
    return replace(answer, command=redact.argv(words), minutes=minutes)


def _until_over(
    process: launch.Process, room: view.Room, folder: Path, limits: Limits, on_wait: Callable[[float], None], clock: Callable[[], float]
) -> str:
    """Wait for the program; why it was ended before it ended itself, "": it was not."""
    began = looked = clock()
    most = min(MOST_WRITTEN, shutil.disk_usage(room.layer).free // 2)
    while process.wait(_POLL_S) is None:
        now = clock()
        on_wait(now - began)
        if now - began > 60 * limits.minutes:
            process.kill("timed_out")
            return f"it did not end within {limits.minutes:g} min"
        if now - looked < _LOOK_EVERY_S:
            continue
        looked = now
        if room.bytes_written() > most:
            process.kill("stopped")
            return f"it wrote more than {most / 1e6:.0f} MB"
        if (folder / "output.log").stat().st_size > MOST_PRINTED:
            process.kill("stopped")
            return f"it printed more than {MOST_PRINTED / 1e6:.0f} MB"
    return ""
