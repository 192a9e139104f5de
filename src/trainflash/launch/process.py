"""One running program with its whole process tree: wait, freeze, thaw, end, and the record of it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal
from typing import Protocol as Interface

from trainflash import redact
from trainflash.launch import footprint, supervise
from trainflash.launch.connections import Connections
from trainflash.launch.output import OutputLog
from trainflash.launch.pacing import Reins
from trainflash.schema import Command, Protection, RunRecord, Side, write_document

SUPERVISOR = Path(supervise.__file__).resolve()
TAIL_BYTES = 64 * 1024
TAIL_LINES = 40
_GONE_S = 30.0  # longer than the supervisor takes before it gives up on a process that cannot be ended
_REFUSED = re.compile(r"\[Errno (?:30|13)\] [^:\n]+: '([^'\n]+)'")
_REFUSED_SHOWN = 20
_OUTPUTS_SHOWN = 5

Status = Literal["finished", "stopped", "failed", "interrupted", "timed_out"]
Kind = Literal["diagnose", "fidelity", "bench", "ceiling", "profile", "author"]
Redact = Callable[[str], str]


class View(Interface):
    """What this module needs of an opened view (see `trainflash.view`)."""

    protection: Protection
    cwd: str
    env: dict[str, str]
    project: str

    def argv(self, argv: Sequence[str]) -> list[str]: ...
    def outputs(self) -> dict[str, int]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Identity:
    """What the record of a run says about where it came from."""

    kind: Kind
    command: Command
    side: Side


class Process:
    """A program started inside `view`. The tree cannot outlive this object's process: see `supervise`.

    `pid` is the supervisor's, whose descendants are the tree; `reins` are there when the program is paced. `stdin`: a file that it reads.
    """

    def __init__(
        self,
        view: View,
        identity: Identity,
        run_dir: Path,
        environment: Mapping[str, str],
        *,
        reins: Reins | None = None,
        clean: Redact | None = None,
        stdin: Path | None = None,
    ) -> None:
        self.view = view
        self.identity = identity
        self.run_dir = run_dir
        self.reins = reins
        self.returncode: int | None = None
        self.at_end: Callable[[], object] = lambda: None  # what its starter wants done once it is over
        self.unkillable = 0  # processes that stayed in an uninterruptible wait
        self._redact = clean
        self._why: Status | None = None
        self._record: RunRecord | None = None
        self._heard = b""
        self.started_utc = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._control, theirs = socket.socketpair()
        self._output = OutputLog(self.log, clean)
        with theirs, self._output.sink() as output, open(stdin or os.devnull, "rb") as given:
            argv = [sys.executable, "-I", "-S", str(SUPERVISOR), str(theirs.fileno()), "--", *view.argv(identity.command.argv)]
            self.started_ns = time.monotonic_ns()
            self._ended_ns: int | None = None
            self._supervisor = subprocess.Popen(
                argv,
                cwd=view.cwd,
                env=dict(environment),
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self.pid = self._supervisor.pid
        self.connections = Connections(self.pid)  # looked at by who waits for a run that is not timed

    @property
    def log(self) -> Path:
        """The program's own output, standard output and error in one file."""
        return self.run_dir / "output.log"

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the program runs."""
        return self._listen(0)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the whole tree is gone; the exit code, or None when `timeout` seconds were not enough."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self._listen(0.5 if deadline is None else min(0.5, max(0.0, deadline - time.monotonic())))) is None:
            if deadline is not None and time.monotonic() >= deadline:
                return None
        return code

    def alive(self) -> bool:
        return self.poll() is None

    def freeze(self) -> bool:
        """Stop every process of the tree; False when one did not stop in time."""
        return supervise.freeze(self.pid)

    def thaw(self) -> None:
        """Let every process of the tree go on."""
        supervise.thaw(self.pid)

    def processes(self) -> int:
        """How many processes of the tree are alive."""
        return len(supervise.living(self.pid))

    def cpu_s(self) -> float:
        """CPU seconds of the whole tree so far, with those of reaped children."""
        return sum(stat[2] for stat in supervise.descendants(self.pid).values())

    def peak_bytes(self) -> int | None:
        """The most host memory that the tree has held, shared pages counted once; best asked while it is frozen."""
        return footprint.peak_bytes(self.pid)

    def kill(self, why: Status = "interrupted") -> None:
        """End the whole tree, stopped or not, and wait until it is gone. Nothing happens when it has ended by itself."""
        if self.poll() is not None:
            return
        self._why = why
        with contextlib.suppress(OSError):
            self._control.sendall(b"kill\n")
        if self.wait(_GONE_S) is None:
            supervise.kill(self.pid)
            self._supervisor.kill()
            self._end(-signal.SIGKILL)

    def output_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of the program's output; of a progress bar only what it showed last."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        shown = [line.rstrip("\r").rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
        return self._clean("\n".join(shown[-lines - 1 :]).strip("\n"))

    def finish(self) -> RunRecord:
        """Kill what still runs, close the view and write `run.json`. The same record when called again."""
        if self._record is not None:
            return self._record
        outputs: dict[str, int] = {}
        try:
            self.kill()
            outputs = self.view.outputs()
        finally:
            if self.reins is not None:
                self.reins.close()
            self._control.close()
            self.view.close()
        self._record = RunRecord(
            id=self.run_dir.name,
            kind=self.identity.kind,
            command=self._shown_command(),
            side=self.identity.side,
            protection=self.view.protection,
            status=self._status(),
            returncode=self.returncode,
            wall_s=((self._ended_ns or time.monotonic_ns()) - self.started_ns) / 1e9,
            started_utc=self.started_utc,
            output_tail=self.output_tail(),
            refused_writes=self._refused(),
            outputs=dict(list(outputs.items())[:_OUTPUTS_SHOWN]),
            outputs_files=len(outputs),
            outputs_bytes=sum(outputs.values()),
            connections=self.connections.seen(),
        )
        write_document(self.run_dir / "run.json", self._record)
        self.at_end()
        return self._record

    def _status(self) -> Status:
        if self._why is not None:
            return self._why
        if (self.run_dir / "stopped.json").exists():
            return "stopped"
        return "finished" if self.returncode == 0 else "failed"

    def _listen(self, timeout: float) -> int | None:
        """Hear what the supervisor says; the exit code once there is one."""
        if self.returncode is not None or not select.select([self._control], [], [], timeout)[0]:
            return self.returncode
        part = self._control.recv(4096)
        self._heard += part
        if b"\n" in self._heard:
            _, code, stuck = self._heard.split(b"\n")[0].split()
            self.unkillable = int(stuck)
            self._end(int(code))
        elif not part:  # the supervisor itself was ended from outside; it takes the program with it
            self._end(-signal.SIGKILL)
        return self.returncode

    def _end(self, code: int) -> None:
        self.returncode = code
        self._ended_ns = time.monotonic_ns()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(5)
        self._output.close()

    def _clean(self, text: str) -> str:
        return self._redact(text) if self._redact is not None else text

    def _shown_command(self) -> Command:
        command = self.identity.command
        if self._redact is None:
            return command
        return Command(redact.argv(command.argv), command.cwd, redact.environment(command.env))

    def _refused(self) -> tuple[str, ...]:
        """Paths that the program could not write, as its own messages name them."""
        found: dict[str, None] = {}
        with contextlib.suppress(OSError), self.log.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                found.update(dict.fromkeys(_REFUSED.findall(line)))
        return tuple(found)[:_REFUSED_SHOWN]
