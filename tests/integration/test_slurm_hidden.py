"""`srun` and `sbatch` called by the owner's own script: what they start is in no view, and must not reach the project."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from owner import User, fingerprint
from probed import PROGRAMS
from slurm_cluster import cluster, free_ports

from trainflash.trace import load

__all__ = ["cluster"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

HIDDEN = f"""
import subprocess, sys
words = ["srun", "--ntasks=2", "--mem=0", {sys.executable!r}, "ranks.py", *sys.argv[1:]]
sys.exit(subprocess.run(words).returncode)
"""


@pytest.fixture
def hidden(user: User, cluster) -> User:
    """A user whose program asks for its ranks itself."""
    ranks = (PROGRAMS / "ranks_slow.py").read_text()
    (user.project / "ranks.py").write_text(f"open('written.txt', 'w').write('x')\n{ranks}")
    (user.project / "hidden.py").write_text(HIDDEN)
    user.git("add", "--all")
    user.git("commit", "--quiet", "--message", "ranks")
    user.environment |= cluster.environment
    return user


def test_ranks_that_the_program_asks_srun_for_never_run_in_the_project(hidden):
    """The first time they are refused; from then on they get copies that all nodes see, like those of `srun` in the command."""
    before = fingerprint(hidden.project)
    words = ("diagnose", "--json", "--steps", "40", "--", "python", "hidden.py", "steps=60", f"port={free_ports(1)[0]}")
    first = hidden.trainflash(*words)
    assert (first.code, first.document["status"]) == (6, "failed"), first.err
    error = first.document["error"]
    assert "the program calls srun, whose processes start outside of the sandbox: it was refused" in error["message"]
    assert error["mend"].startswith("give the same command again")
    assert fingerprint(hidden.project) == before
    second = hidden.trainflash(*words)
    assert (second.code, second.document["protection"]) == (0, "manifest"), second.err
    assert fingerprint(hidden.project) == before
    ranks = load(Path(second.document["sandbox"], "runs", second.document["run"])).ranks
    assert [rank.rank for rank in ranks] == [0, 1]


def test_a_job_that_the_program_submits_is_refused(hidden):
    """By whatever path it is called; the training itself goes on, and its diagnosis says so."""
    sbatch = shutil.which("sbatch")
    call = f"import subprocess; subprocess.run([{sbatch!r}, '--wrap', 'touch written.txt'])\n"
    train = hidden.project / "train.py"
    train.write_text(call + train.read_text())
    before = fingerprint(hidden.project)
    found = hidden.trainflash("diagnose", "--json", "--steps", "40", "--", "python", "train.py")
    assert (found.code, found.document["protection"]) == (0, "mount"), found.err
    assert any(note.startswith("The program calls sbatch") and "it was refused" in note for note in found.document["notes"])
    assert fingerprint(hidden.project) == before
