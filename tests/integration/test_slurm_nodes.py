"""Nodes of a cluster that are not as they should be: another checkout, a run folder that is not shared, a clock that is off by minutes.

Slurm's nodes are one machine here, so the second one is made different by namespaces of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from owner import User
from probed import PROGRAMS
from slurm_cluster import cluster, free_ports

from trainflash.trace import load

__all__ = ["cluster"]
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare for a node of another kind"),
]
OFF_S = 300
OTHER_FILE = "cp ranks.py other.py; echo >> other.py; mount --bind other.py ranks.py"
OWN_FOLDER = 'mount -t tmpfs none "$TRAINFLASH_RUN"'
TROUBLES = {
    "checkout": f"unshare --mount sh -c '{OTHER_FILE}; exec python ranks.py \"$@\"' sh",
    "folder": f"unshare --mount sh -c '{OWN_FOLDER}; exec python ranks.py \"$@\"' sh",
    "clock": f"unshare --fork --time --monotonic {OFF_S} --boottime {OFF_S} python ranks.py",
}


@pytest.fixture
def diagnosed(user: User, cluster):
    """The diagnosis of two ranks on two nodes, the second of them in trouble; its document and its ranks."""

    def diagnose(trouble: str) -> tuple[dict, list]:
        shutil.copy(PROGRAMS / "ranks_slow.py", user.project / "ranks.py")
        user.environment |= cluster.environment
        script = f'if [ "$SLURMD_NODENAME" = n2 ]; then exec {TROUBLES[trouble]} "$@"; fi\nexec python ranks.py "$@"\n'
        (user.project / "node.sh").write_text(script)
        user.git("add", "--all")
        user.git("commit", "--quiet", "--message", "ranks")
        options = ("--slurm-option", "nodes=2", "--slurm-option", "ntasks=2", "--slurm-option", "ntasks-per-node=1")
        job = ("slow=backward", "ms=400", "steps=60", f"port={free_ports(1)[0]}")
        words = ("diagnose", "--json", "--steps", "40", "--on", "slurm", *options, "--", "srun", "sh", "node.sh", *job)
        found = user.trainflash(*words, timeout=500)
        assert found.code == 0, found.err
        ranks = load(Path(found.document["sandbox"], "runs", found.document["run"])).ranks
        return found.document, list(ranks)

    return diagnose


def test_another_checkout_on_a_node_is_named_by_file(diagnosed):
    document, ranks = diagnosed("checkout")
    assert [rank.host for rank in ranks] == ["n1", "n2"]
    assert "ranks run different code: ranks.py on rank 1 (n2) is not that of rank 0 on n1" in document["notes"]


def test_a_rank_whose_files_did_not_arrive_is_named(diagnosed):
    document, ranks = diagnosed("folder")
    assert [rank.rank for rank in ranks] == [0]
    assert any(note.startswith("rank 1 of 2 has left no steps: these figures are of the others") for note in document["notes"])


def test_a_clock_that_is_off_by_minutes_blames_nobody_else(diagnosed):
    if subprocess.run(["unshare", "--fork", "--time", "--monotonic", "1", "true"], capture_output=True).returncode:
        pytest.skip("this kernel has no namespaces of time")
    document, ranks = diagnosed("clock")
    first, second = (rank.step_start_ns[0] for rank in ranks)
    assert abs(second - first) > (OFF_S - 60) * 1e9  # the clocks are off, as seen by who does not align them
    found = document["findings"][0]
    assert (found["kind"], found["phase"]) == ("rank_straggler", "Bwd")
    assert found["summary"].startswith("rank 1 on n2 is ")
