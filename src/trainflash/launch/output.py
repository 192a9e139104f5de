"""The program's own output on its way into a file: secrets are taken out before a byte of it is written."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from trainflash.redact import Stream

PIPE_BYTES = 1 << 20  # what a program can print without waiting for us, where the kernel allows it
_PAUSE_S = 0.02  # between two looks, so that a program that prints much does not wake us for each line
_POLL_MS = 1000
_CLOSING_S = 5.0  # for what the last process printed; one that cannot be ended may hold the pipe for ever


class OutputLog:
    """A file at `path` that is filled with what a program writes into `sink()`, cleaned line by line; `clean` None: as it is.

    The last line appears when it is ended, or with `close`.
    """

    def __init__(self, path: Path, clean: Callable[[str], str] | None) -> None:
        self.lost: str | None = None  # why the rest of the output is not in the file
        self._file = path.open("wb", buffering=0)
        self._stream = Stream(clean) if clean is not None else None
        self._source = -1
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read, name="output", daemon=True)

    def sink(self) -> BinaryIO:
        """What to start the program with, once; to be closed here as soon as it has started."""
        if self._stream is None:
            return self._file
        self._source, given = os.pipe()
        with contextlib.suppress(OSError, AttributeError):  # the kernel's limit for pipes; other systems have no such call
            fcntl.fcntl(given, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._reader.start()
        return os.fdopen(given, "wb", buffering=0)

    def close(self) -> None:
        """Write what is left; to be called when the program is over. Safe to repeat."""
        self._closing.set()
        if self._reader.is_alive():
            self._reader.join(_CLOSING_S)
        else:
            self._file.close()

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        with self._file:
            while (ready := poll.poll(_POLL_MS)) or not self._closing.is_set():
                if not ready:
                    continue
                data = os.read(self._source, PIPE_BYTES)
                if not data:
                    break
                self._write(self._stream.feed(data))
                if len(data) < PIPE_BYTES // 16:
                    self._closing.wait(_PAUSE_S)
            self._write(self._stream.close())
        os.close(self._source)

    def _write(self, data: bytes) -> None:
        """A full disk loses output, and never stops the program."""
        try:
            while data and self.lost is None:
                data = data[self._file.write(data) :]
        except OSError as bad:
            self.lost = bad.strerror or str(bad)
