"""Hands one typed command to Slurm, through submitit."""

from __future__ import annotations

import math
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.launch.slurm.job import TypedCommand
from trainflash.launch.slurm.wanted import Wanted

TIMES_OUT = 3  # how often a job that reached its time limit goes on in another one
WARNED_S = 90  # before Slurm ends a job; of a short one a fifth


@dataclass(frozen=True)
class Submitted:
    """A job, or with several commands an array of jobs; one folder for each, in their order."""

    job_ids: tuple[str, ...]
    folders: tuple[Path, ...]


def require_slurm() -> None:
    """Raises `UsageError` with the mend where jobs cannot be submitted from here."""
    missing = [name for name in ("sbatch", "srun", "scontrol", "scancel") if shutil.which(name) is None]
    if missing:
        raise UsageError(f"no Slurm here: {missing[0]} was not found", "run this on a login node of the cluster, or without --on slurm")
    if find_spec("submitit") is None:
        raise UsageError("submitting needs the package submitit", f"`{sys.executable} -m pip install submitit`")


def submit(commands: Sequence[TypedCommand], wanted: Wanted, folder: Path, name: str) -> Submitted:
    """Submit `commands`, several as one array. `folder` must be shared with the nodes. Raises `UsageError` when Slurm refuses."""
    import submitit

    # The job's shell becomes our process, because Slurm warns that shell alone ("B:"). No srun around it: a step of ours would hold the
    # resources that the owner's own srun asks for.
    minutes = max(1, math.ceil(wanted.time_s / 60))
    executor = submitit.SlurmExecutor(folder, max_num_timeout=TIMES_OUT, python=f"exec {shlex.quote(sys.executable)}")
    executor.update_parameters(
        job_name=name,
        time=minutes,
        use_srun=False,
        additional_parameters={"requeue": True, **wanted.parameters(), "signal": f"B:USR2@{min(WARNED_S, 12 * minutes)}"},
    )
    try:
        if len(commands) == 1:
            jobs = [executor.submit(commands[0])]
        else:
            with executor.batch():
                jobs = [executor.submit(command) for command in commands]
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as bad:
        said = [line.strip() for line in str(bad).splitlines() if "error:" in line] or str(bad).splitlines()[-1:]
        raise UsageError(
            f"Slurm refuses the job: {said[0].partition('error: ')[2] or said[0]}", "`sinfo` lists partitions, limits and features"
        ) from None
    return Submitted(tuple(job.job_id for job in jobs), tuple(Path(command.folder) for command in commands))
