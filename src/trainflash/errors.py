"""The exception tree: one class per exit code, and the only place where exit codes are numbers.

Every message is one line that says what is wrong; `mend` is one line that says what to do about it.
The command line and the MCP server catch `TrainFlashError` once, at the outside.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_INTERNAL = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, what a shell expects after Ctrl-C


class TrainFlashError(Exception):
    """Base of all errors that we raise on purpose; `exit_code` is what the process ends with."""

    exit_code = EXIT_INTERNAL
    status = "error"

    def __init__(self, message: str, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend


class UsageError(TrainFlashError):
    """The command was typed wrong, or its input (a file, a knob, a project) cannot be used."""

    exit_code = 2


class Inconclusive(TrainFlashError):
    """There is not enough evidence for a verdict."""

    exit_code = 3
    status = "inconclusive"


class Rejected(TrainFlashError):
    """The evidence says no: slower, not faster enough, or not the same training."""

    exit_code = 4
    status = "rejected"


class ApprovalNeeded(TrainFlashError):
    """The owner has not approved exactly this diff; nothing was written."""

    exit_code = 5
    status = "needs_approval"


class ProgramFailed(TrainFlashError):
    """The user's own program failed, or never trained. Its output and code are shown with it."""

    exit_code = 6
    status = "failed"

    def __init__(self, message: str, mend: str = "", *, returncode: int | None = None, output: str = "") -> None:
        super().__init__(message, mend)
        self.returncode = returncode
        self.output = output
