"""Asks a node, before anything is submitted, whether a job of ours could run there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from trainflash import __version__
from trainflash.errors import UsageError
from trainflash.launch.slurm.wanted import Wanted

PATIENCE_S = 10  # for a free node; a full cluster is not waited for, the job itself finds out then
_ANSWER_S = 90.0  # an import over a cold network file system
_NO_NODE = ("Unable to allocate resources", "Unable to create step", "queued and waiting", "Requested nodes are busy")
_REFUSED = (
    "Invalid", "invalid", "not permitted", "more processors", "node configuration is not available", "violates", "Requested time limit",
)  # fmt: skip
_MARK = "trainflash-node:"
_LOOK = f"""
import json, os, platform, sys
unseen = [path for path in sys.argv[1:] if not os.access(path, os.R_OK | os.X_OK)]
said = {{"node": os.environ.get("SLURMD_NODENAME") or platform.node(), "unseen": unseen}}
try:
    import submitit, trainflash
    said["version"] = trainflash.__version__
except Exception as bad:
    said["lacks"] = str(bad)
print("{_MARK}" + json.dumps(said))
"""


def ask_a_node(wanted: Wanted, folders: list[Path]) -> str:
    """Start a tiny step on a free node: it must have this interpreter, our package and these folders. Returns the node's name.

    "" where no node was free within some seconds. Raises `UsageError` with what the node lacks, or when Slurm refuses the options.
    """
    options = [f"--{name}" if value is True else f"--{name}={value}" for name, value in wanted.of_a_node().items()]
    command = [
        "srun",
        "--quiet",
        "--job-name=trainflash-node",
        "--nodes=1",
        "--ntasks=1",
        "--time=1",
        f"--immediate={PATIENCE_S}",
        "--chdir=/",
        *options,
    ]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_") or name == "SLURM_CONF"}
    try:
        done = subprocess.run(
            [*command, sys.executable, "-c", _LOOK, *map(str, folders)],
            capture_output=True, text=True, timeout=_ANSWER_S, stdin=subprocess.DEVNULL, env=outside,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    answers = [line.removeprefix(_MARK) for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if answers:
        return _judged(json.loads(answers[0]))
    said = [line.removeprefix("srun: error: ") for line in done.stderr.splitlines() if line.strip()]
    if any(sign in line for line in said for sign in _REFUSED):
        raise UsageError(f"Slurm refuses: {said[-1]}", "`sinfo` lists partitions and features for --slurm-partition and --slurm-constraint")
    if any(sign in line for line in said for sign in _NO_NODE):
        return ""
    raise UsageError(
        f"a node of the cluster cannot start {sys.executable}: {said[-1] if said else f'exit code {done.returncode}'}",
        "install trainflash into an environment on a file system that all nodes share, and submit from there",
    )


def _judged(said: dict) -> str:
    node = str(said["node"])
    if "lacks" in said:
        raise UsageError(f"node {node} lacks the package: {said['lacks']}", f"there, `{sys.executable} -m pip install 'trainflash[slurm]'`")
    if said["unseen"]:
        raise UsageError(
            f"node {node} does not see {said['unseen'][0]}", "project and sandbox must lie on a shared file system; see XDG_STATE_HOME"
        )
    if said["version"] != __version__:
        raise UsageError(f"node {node} has trainflash {said['version']}, here is {__version__}", "install the same version on all nodes")
    return node
