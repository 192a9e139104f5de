"""What runs inside the job: the command that was typed, once more for each time that the scheduler starts the job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainflash.launch import supervise
from trainflash.schema import write_atomically

ANSWER, PROGRESS, RESULT = "answer.txt", "progress.txt", "result.json"
ORDERLY_END_S = 45.0  # of the 90 s that Slurm gives between the signal and the end
TAKEN_AWAY_S = 40.0  # KillWait is 30 s unless an administrator changed it
_POLL_S = 0.2
_RUN = "import sys; sys.path.pop(0); from trainflash.cli import main; sys.exit(main())"  # `-m` would import from the project first


@dataclass
class TypedCommand:
    """`trainflash` with these arguments, in `cwd`. Its output goes to files of `folder`, where the login side reads it.

    Slurm starts a job anew that was preempted, or whose node failed; then `again` is put before the owner's command instead of `first`.
    """

    before: tuple[str, ...]
    owners: tuple[str, ...]
    cwd: str
    folder: str
    first: tuple[str, ...]
    again: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    _pid: int = 0

    def __call__(self) -> int:
        """Run it; its exit code, which is kept in a file too."""
        restarted = os.environ.get("SLURM_RESTART_COUNT", "0") not in {"", "0"}
        argv = [*self.before, *(self.again if restarted else self.first), *self.owners]
        folder = Path(self.folder)
        with (folder / ANSWER).open("wb") as answer, (folder / PROGRESS).open("ab") as progress:
            child = subprocess.Popen(
                [sys.executable, "-c", _RUN, *argv],
                cwd=self.cwd,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=progress,
            )
        self._pid = child.pid
        while (code := child.poll()) is None:
            time.sleep(_POLL_S)
        self._pid = 0
        if code < 0:
            time.sleep(TAKEN_AWAY_S)  # a job that is requeued ends here with its processes: that is no result
        write_atomically(folder / RESULT, json.dumps({"code": code}) + "\n")
        return code

    def checkpoint(self) -> object:
        """Called when Slurm says that the job will end soon: end the command as Ctrl-C does, and be submitted again as it is."""
        from submitit.helpers import DelayedSubmission

        pid, self._pid = self._pid, 0
        deadline = time.monotonic() + ORDERLY_END_S
        if pid:
            supervise.signal_each([pid], signal.SIGINT)
            while _lives(pid) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            if _lives(pid):
                supervise.signal_each([pid], signal.SIGKILL)
        return DelayedSubmission(self)


def _lives(pid: int) -> bool:
    """Not by waiting for it: the signal may have come while the main program was doing just that."""
    stat = supervise.process_stat(pid)
    return stat is not None and stat[1] not in "ZX"
