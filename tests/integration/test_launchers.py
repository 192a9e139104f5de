"""Launchers in the owner's command: torchrun with two rendezvous nodes on the loopback, Open MPI's mpirun."""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path

import pytest
from owner import User
from probed import PROGRAMS
from slurm_cluster import free_ports

from trainflash import launch, sandbox
from trainflash.errors import ProgramFailed
from trainflash.launch.absent import Absent
from trainflash.schema import Command
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


def test_a_rank_that_never_starts_ends_the_run_by_name(distributed, monkeypatch, tmp_path):
    """The others wait for it at the rendezvous, for half an hour if they are let."""
    monkeypatch.setenv("XDG_STATE_HOME", distributed.environment["XDG_STATE_HOME"])
    monkeypatch.setattr(launch, "Absent", functools.partial(Absent, patience_s=5))
    first = f"WORLD_SIZE=2 RANK=0 {sys.executable} ranks.py port={free_ports(1)[0]}"
    (distributed.project / "half.sh").write_text(f"{first} &\nsleep 600\n")
    box, run_dir = sandbox.create(distributed.project), tmp_path / "run"
    record = launch.run(box, "candidate", Command(("sh", "half.sh")), run_dir, capture="diagnose", timeout=300)
    assert record.status == "timed_out" and record.wall_s < 250
    with pytest.raises(ProgramFailed, match=r"of 2 ranks only 1 started \(.*\): rank 1 never imported torch"):
        launch.require_success(record, run_dir)
