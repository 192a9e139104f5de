"""Stand-ins for Slurm's commands in a view: a program that calls them would start processes that no view holds.

What `srun` starts is a child of slurmd. It sees the project on its own path, and a mount view shows the program that very path: the step
would run in the original. So in a mount view `srun` is refused and told, and whoever starts the command again gives it copies instead.
In copies it is told too and let through. `sbatch` is refused in both: its job outlives the view.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

from trainflash.schema.notices import refusal

STEPS, JOBS = "srun", "sbatch"
# MPI's clients reach other machines by ssh, unless one of these names something else.
_AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC")
_MPI = "mpirun"
_STARTS = "the program calls {}, whose processes start outside of the sandbox"
_AGAIN = "give the same command again: it then runs in copies of the project"
_NO_JOBS = "the program calls sbatch, whose job would run outside of the sandbox and after it"


def covers(layer: Path, run_dir: Path) -> tuple[dict[str, str], dict[str, str]]:
    """For a mount view: what lies over which of Slurm's programs there, and variables for those of MPI. Made in `layer`."""
    refused = {name: _refusing(_STARTS.format(name), _AGAIN, name, run_dir) for name in (STEPS, _MPI)}
    jobs = _refusing(_NO_JOBS, "give --on slurm and the command that the job runs", JOBS, run_dir)
    over = {
        os.path.realpath(found): _script(layer, name, text)
        for name, text in ((STEPS, refused[STEPS]), (JOBS, jobs))
        if (found := shutil.which(name))
    }
    agents = dict.fromkeys(_AGENTS, _script(layer, _MPI, refused[_MPI])) if shutil.which(_MPI) or shutil.which("mpiexec") else {}
    return over, agents


def beside(layer: Path, run_dir: Path, *, known: bool) -> dict[str, str]:
    """For a view of copies: variables under which Slurm's programs are found through a stand-in. `known`: such steps are expected."""
    made = []
    if (found := shutil.which(STEPS)) and not known:
        made.append(_script(layer, STEPS, f'{_telling(_STARTS.format(STEPS), STEPS, run_dir)}exec {shlex.quote(found)} "$@"\n'))
    if shutil.which(JOBS):
        made.append(_script(layer, JOBS, _refusing(_NO_JOBS, "give --on slurm and the command that the job runs", JOBS, run_dir)))
    return {"PATH": os.pathsep.join([os.path.dirname(made[0]), os.environ.get("PATH", os.defpath)])} if made else {}


def _refusing(what: str, mend: str, name: str, run_dir: Path) -> str:
    notice = refusal(what, mend)
    return f"{_telling(notice, name, run_dir)}echo {shlex.quote(f'trainflash: {notice}')} >&2\nexit 1\n"


def _telling(what: str, name: str, run_dir: Path) -> str:
    notice = json.dumps({"notice": what, "outside": name})[1:]
    return f"printf '{{\"pid\": %d, %s\\n' $$ {shlex.quote(notice)} >> {shlex.quote(str(run_dir / 'notice.jsonl'))}\n"


def _script(layer: Path, name: str, text: str) -> str:
    folder = layer / "outside"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8", errors="surrogateescape")
    path.chmod(0o755)
    return str(path)
