"""Launchers in the owner's command: torchrun with two rendezvous nodes on the loopback, Open MPI's mpirun."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from owner import User
from probed import PROGRAMS
from slurm_cluster import free_ports

from trainflash.trace import load

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

STRAGGLER = ("slow=backward", "late=2", "ms=400", "steps=2000")


@pytest.fixture
def distributed(user: User) -> User:
    """A user whose training has several ranks."""
    shutil.copy(PROGRAMS / "ranks_slow.py", user.project / "ranks.py")
    user.git("add", "--all")
    user.git("commit", "--quiet", "--message", "ranks")
    return user


def named(user: User, *command: str) -> tuple[dict, list[int]]:
    """The first finding of the diagnosis, and the ranks that were seen."""
    found = user.trainflash("diagnose", "--json", "--steps", "40", "--", *command, timeout=600)
    assert found.code == 0, found.err
    ranks = load(Path(found.document["sandbox"], "runs", found.document["run"])).ranks
    assert {rank.world_size for rank in ranks} == {len(ranks)}
    assert found.document["protection"] != "manifest"  # all of it is below us, so the view holds
    return found.document["findings"][0], [rank.rank for rank in ranks]


def test_ranks_of_two_torchrun_nodes_are_one_training_and_the_slow_one_is_named(distributed):
    port = free_ports(1)[0]
    torchrun = (
        f"{sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port}"
    )
    nodes = [f"{torchrun} --rdzv-id t --local-addr 127.0.0.1 ranks.py {' '.join(STRAGGLER)}" for _ in range(2)]
    (distributed.project / "two_nodes.sh").write_text(f"{nodes[0]} &\n{nodes[1]} &\nwait\n")
    finding, ranks = named(distributed, "sh", "two_nodes.sh")
    assert ranks == [0, 1, 2, 3]
    assert (finding["kind"], finding["phase"]) == ("rank_straggler", "Bwd")
    assert finding["summary"].startswith("rank 2 ")


def test_ranks_of_mpirun_are_one_training_and_the_slow_one_is_named(distributed):
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun here: on Debian `apt-get install openmpi-bin`")
    options = ("--allow-run-as-root", "--oversubscribe", "-n", "3")
    finding, ranks = named(distributed, "mpirun", *options, sys.executable, "ranks.py", *STRAGGLER, f"port={free_ports(1)[0]}")
    assert ranks == [0, 1, 2]
    assert (finding["kind"], finding["phase"]) == ("rank_straggler", "Bwd")
    assert finding["summary"].startswith("rank 2 ")
