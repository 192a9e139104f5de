"""What the scheduler says about one job. `scontrol` alone is asked: accounting, which `sacct` needs, is not everywhere."""

from __future__ import annotations

import contextlib
import re
import subprocess
from dataclasses import dataclass

ASK_S = 30.0  # a scheduler that is busy may take so long to answer
WAITS = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED"})
RUNS = frozenset({"CONFIGURING", "RUNNING", "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"})
UNKNOWN = "UNKNOWN"
# Reasons of a job that waits which no waiting will change: https://slurm.schedmd.com/job_reason_codes.html
HOPELESS = frozenset({
    "AccountNotAllowed", "AccountingPolicy", "AssociationTimeLimit", "BadConstraints", "InvalidAccount", "InvalidQOS",
    "JobHeldAdmin", "JobHeldUser", "launch failed requeued held", "PartitionConfig", "PartitionDown", "PartitionInactive",
    "PartitionNodeLimit", "PartitionTimeLimit", "QOSNotAllowed", "QOSTimeLimit", "ReservationDeleted",
})  # fmt: skip


@dataclass(frozen=True)
class JobState:
    """`name` as Slurm says it, UNKNOWN where it could not be asked; `restarts`: how often the job was requeued."""

    name: str
    reason: str = ""
    nodes: str = ""
    restarts: int = 0
    exit_code: str = ""

    @property
    def waits(self) -> bool:
        return self.name in WAITS

    @property
    def over(self) -> bool:
        return self.name not in WAITS | RUNS | {UNKNOWN}

    @property
    def hopeless(self) -> bool:
        """Whether it waits for what will not come."""
        return self.waits and self.reason in HOPELESS


def state(job_id: str) -> JobState | None:
    """The job as the scheduler sees it; None when it knows it no longer."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", "--oneliner", job_id], capture_output=True, text=True, timeout=ASK_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return JobState(UNKNOWN)
    if done.returncode:
        return None if "Invalid job id" in done.stderr else JobState(UNKNOWN)
    return read(done.stdout)


def read(line: str) -> JobState:
    """One line of `scontrol show job --oneliner`: words of the form Key=Value; a value may hold blanks."""
    fields = dict(re.findall(r"(?:^|\s)([A-Za-z/:]+)=(.*?)(?=\s[A-Za-z/:]+=|\s*$)", line))
    reason = fields.get("Reason", "")
    return JobState(
        name=fields.get("JobState", UNKNOWN),
        reason="" if reason == "None" else reason.replace("_", " ") if "_" in reason else reason,
        nodes="" if (nodes := fields.get("NodeList", "")) == "(null)" else nodes,
        restarts=int(fields["Restarts"]) if fields.get("Restarts", "").isdigit() else 0,
        exit_code=fields.get("ExitCode", ""),
    )


def cancel(job_id: str) -> None:
    """Take the job out of the queue or end it; one that is over already is fine."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(["scancel", job_id], capture_output=True, timeout=ASK_S, stdin=subprocess.DEVNULL)
