"""A Slurm cluster of this machine alone: its own munge, controller and two virtual nodes, in a folder that is removed afterwards."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

NODES = ("n1", "n2")
SERVERS = ("munged", "slurmctld", "slurmd")
_CONFIGURATION = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
PartitionName=short Nodes={names} MaxTime=1 State=UP
"""


@dataclass(frozen=True)
class Cluster:
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints."""
        done = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout

    def jobs(self) -> dict[str, str]:
        """State of each job that is not over, by its number; without those that only ask a node."""
        lines = [line.split() for line in self.ask("squeue", "--noheader", "--format=%i %T %j").splitlines()]
        return {line[0]: line[1] for line in lines if line[2:] != ["trainflash-node"]}

    def wait_for(self, state: str, timeout_s: float = 120) -> str:
        """The number of a job in `state`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for number, seen in self.jobs().items():
                if seen == state:
                    return number
            time.sleep(0.3)
        raise AssertionError(f"no job was {state} within {timeout_s} s: {self.jobs()}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes with four cores each, as far as the scheduler knows."""
    missing = [name for name in (*SERVERS, "sbatch") if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        pytest.skip(f"no Slurm here ({missing[0]} not found): on Debian `apt-get install slurm-wlm munge`")
    if os.geteuid() != 0:
        pytest.skip("a cluster of our own needs root")
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("submitit is not installed: pip install 'trainflash[slurm]'")
    folder = Path(tempfile.mkdtemp(prefix="tf-slurm-", dir="/tmp"))  # the path of munge's socket must be short
    folder.chmod(0o755)
    try:
        _start(folder)
        yield Cluster(folder)
    finally:
        _stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> None:
    for name in ("state", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    ports = free_ports(1 + len(NODES))
    nodes = [
        f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname={socket.gethostname()} Port={port} CPUs=4 RealMemory=1000 State=UNKNOWN"
        for node, port in zip(NODES, ports[1:], strict=True)
    ]
    text = _CONFIGURATION.format(
        host=socket.gethostname(), controller_port=ports[0], folder=folder, nodes="\n".join(nodes), names=",".join(NODES)
    )
    (folder / "slurm.conf").write_text(text)
    server(
        folder, "munged", "--force", f"--key-file={key}", f"--socket={folder}/munge.sock", f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed",
    )  # fmt: skip
    server(folder, "slurmctld", "-c")
    for node in NODES:
        server(folder, "slurmd", "-N", node)
    cluster = Cluster(folder)
    deadline = time.monotonic() + 60
    while cluster.ask("sinfo", "--noheader", "--partition=main", "--format=%t %D").split() != ["idle", str(len(NODES))]:
        assert time.monotonic() < deadline, (folder / "slurmctld.log").read_text()[-2000:]
        time.sleep(0.3)


def server(folder: Path, name: str, *arguments: str) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    subprocess.run([str(shutil.which(name, path=path)), *arguments], env=environment, check=True, timeout=60, capture_output=True)


def _stop(folder: Path) -> None:
    Cluster(folder).ask("scancel", "--user=root", "--state=PENDING", "--state=RUNNING")
    time.sleep(1)
    for path in (*sorted(folder.glob("slurmd.*.pid")), folder / "slurmctld.pid", folder / "munged.pid"):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(path.read_text()), signal.SIGTERM)
    time.sleep(2)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
