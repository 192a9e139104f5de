"""Stacks of a running Python process through py-spy, which reads its memory and neither stops nor changes it (`--nonblocking`)."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_THREAD = re.compile(r"^Thread (\d+)")
_UNREAD = re.compile(r"Errors: (\d+)")
_DUMP_S = 10.0
_END_S = 10.0


@dataclass(frozen=True)
class Frame:
    """One Python frame; `line` is where it stands."""

    file: str
    line: int
    function: str


Stack = tuple[Frame, ...]  # innermost first


@dataclass(frozen=True)
class Look:
    """The threads of a process at one moment."""

    stacks: dict[int, Stack]
    holds_gil: int | None  # the thread that does


class Refused(Exception):
    """py-spy could not read the process; the message is its last words."""


def find_spy() -> str | None:
    """py-spy beside this interpreter, else on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def look(spy: str, pid: int) -> Look:
    """All stacks of `pid` now. Raises `Refused`."""
    command = [spy, "dump", "--pid", str(pid), "--json", "--nonblocking", "--full-filenames"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DUMP_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as bad:
        raise Refused(str(bad)) from None
    if done.returncode != 0:
        raise Refused(_last_words(done.stderr))
    try:
        threads = json.loads(done.stdout)
        stacks = {int(each["os_thread_id"]): _frames(each["frames"], "filename") for each in threads if each.get("os_thread_id")}
        holder = next((int(each["os_thread_id"]) for each in threads if each.get("owns_gil") and each.get("os_thread_id")), None)
    except (ValueError, KeyError, TypeError) as bad:
        raise Refused(f"its answer could not be read: {bad}") from None
    return Look(stacks, holder)


class Recording:
    """Samples of one process, `hertz` times a second for `seconds`, or until it ends. `unread`, the lost ones, is there after `finish`."""

    def __init__(self, spy: str, pid: int, seconds: float, hertz: float) -> None:
        self.pid = pid
        self.unread = 0
        self._directory = tempfile.TemporaryDirectory(prefix="trainflash-live-")
        self._output = Path(self._directory.name) / "stacks.json"
        command = [
            spy, "record", "--pid", str(pid), "--output", str(self._output), "--format", "speedscope",
            "--duration", str(max(1, round(seconds))), "--rate", str(max(1, round(hertz))),
            "--idle", "--threads", "--full-filenames", "--nonblocking",
        ]  # fmt: skip
        self._words = Path(self._directory.name) / "words"
        with self._words.open("wb") as words:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT)

    @property
    def failed(self) -> bool:
        """It ended without stacks: py-spy reads a process that runs on, and gives up where its first look meets a moment of change."""
        return self._process.poll() is not None and not self._output.exists()

    def finish(self) -> dict[int, list[Stack]]:
        """Samples in order, by thread number; empty when none could be taken."""
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGINT)  # on Ctrl-C it writes what it has
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self.stop()
        with self._directory, contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            lost = _UNREAD.findall(self._words.read_text(encoding="utf-8", errors="replace"))
            self.unread = int(lost[-1]) if lost else 0
            return _by_thread(json.loads(self._output.read_text(encoding="utf-8", errors="replace")))
        return {}

    def stop(self) -> None:
        """End the recording early."""
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _by_thread(recorded: dict[str, Any]) -> dict[int, list[Stack]]:
    frames = _frames(recorded["shared"]["frames"], "file")
    found: dict[int, list[Stack]] = {}
    for profile in recorded["profiles"]:
        named = _THREAD.match(profile["name"])
        if named:
            found[int(named[1])] = [tuple(frames[index] for index in reversed(sample)) for sample in profile["samples"]]
    return found


def _frames(plain: list[dict[str, Any]], file: str) -> Stack:
    return tuple(Frame(str(each.get(file) or ""), int(each.get("line") or 0), str(each.get("name") or "")) for each in plain)


def _last_words(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(
        (line.removeprefix("Error: ") for line in lines if line.startswith(("Error", "Permission"))), lines[-1] if lines else "no answer"
    )
