"""How a process knows its rank, how many there are, and its machine, before it joins a group: each launcher has its own words."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from trainflash.launch import PROBE_DIR
from trainflash.launch.environment import Recording, program_environment

ASK = "import json, trainflash_probe.process as p; print(json.dumps([p.rank(), p.world_size(), p.local_world_size(), p.host()]))"
HERE = os.uname().nodename
STEP = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7", "SLURM_NTASKS": "7", "SLURM_NODEID": "2",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),3", "SLURMD_NODENAME": "n3",
}  # fmt: skip


def told(**variables: str) -> list:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI", "PMI", "RANK", "WORLD", "LOCAL"))}
    environment = {**clean, "PYTHONPATH": str(PROBE_DIR), **variables}
    return json.loads(subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, [0, 1, None, HERE]),
        ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, [3, 4, 2, HERE]),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, [1, 3, 3, HERE]),
        ({"PMI_RANK": "2", "PMI_SIZE": "8", "MPI_LOCALNRANKS": "4"}, [2, 8, 4, HERE]),
        (STEP, [5, 7, 3, "n3"]),
        ({**STEP, "RANK": "11", "WORLD_SIZE": "28", "LOCAL_WORLD_SIZE": "4"}, [11, 28, 4, "n3"]),  # torchrun, started by srun
        ({**STEP, "TRAINFLASH_STEP": "7.0"}, [0, 1, None, HERE]),  # the step is the shell's in which we were typed
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURMD_NODENAME": "n1"}, [0, 1, None, HERE]),  # a batch script
    ],
)
def test_each_launcher_is_understood(variables, expected):
    assert told(**variables) == expected


def test_the_step_that_we_are_in_is_handed_on(tmp_path):
    inherited = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3"}
    made = program_environment(
        inherited, {}, project="/p", run_dir=tmp_path, recording=Recording("diagnose"), pace_dir=None, online=True
    )  # fmt: skip
    assert made["TRAINFLASH_STEP"] == "7.3"
    without = program_environment({}, {}, project="/p", run_dir=tmp_path, recording=Recording("diagnose"), pace_dir=None, online=True)
    assert "TRAINFLASH_STEP" not in without
