"""Runs as Slurm jobs, on a cluster of our own: what is named, what survives, what is said."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from owner import Ran, User, fingerprint
from probed import PROGRAMS
from slurm_cluster import Cluster, cluster, free_ports

from trainflash.launch import supervise
from trainflash.trace import load

__all__ = ["cluster"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

FASTER = ("def parse(index):", "import functools\n\n\n@functools.lru_cache(None)\ndef parse(index):")


@pytest.fixture
def submitter(user: User, cluster: Cluster) -> User:
    """A user of the cluster, whose project also has a job of several ranks."""
    shutil.copy(PROGRAMS / "ranks_slow.py", user.project / "ranks.py")
    user.git("add", "--all")
    user.git("commit", "--quiet", "--message", "ranks")
    user.environment |= cluster.environment
    return user


def started(user: User, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        user.command(*arguments), cwd=user.project, env=user.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str], timeout: float = 600) -> Ran:
    out, err = process.communicate(timeout=timeout)
    return Ran(process.returncode, out, err)


def faster_patch(user: User, folder: Path) -> Path:
    """A change that keeps what was parsed; the parser is made less slow first, for the test's sake."""
    source = (user.project / "train.py").read_text().replace("range(30000)", "range(8000)")
    (user.project / "train.py").write_text(source)
    user.git("commit", "--quiet", "--all", "--message", "less slow")
    (user.project / "train.py").write_text(source.replace(*FASTER))
    patch = folder / "faster.diff"
    patch.write_text(user.git("diff"))
    user.git("checkout", "--quiet", "train.py")
    return patch


def children_of(words: str) -> list[int]:
    """Processes that run this command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in text and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


def test_a_straggler_among_four_ranks_on_two_nodes_is_named_soon(submitter):
    before = fingerprint(submitter.project)
    job = ("slow=backward", "late=2", "ms=400", "steps=2000", f"port={free_ports(1)[0]}")
    options = ("--on", "slurm", "--slurm-option", "nodes=2", "--slurm-option", "ntasks=4", "--slurm-option", "ntasks-per-node=2")
    found = submitter.trainflash("diagnose", "--json", "--steps", "40", *options, "--", "srun", "python", "ranks.py", *job, timeout=600)
    named_ns = time.monotonic_ns()
    assert found.code == 0, found.err
    first = found.document["findings"][0]
    assert (first["kind"], first["phase"]) == ("rank_straggler", "Bwd")
    assert first["summary"].startswith("rank 2 on n2 is ")
    assert first["location"]["function"] == "Spin.backward"
    assert found.document["protection"] == "manifest"  # what slurmd starts is in no mount view
    assert fingerprint(submitter.project) == before
    ranks = load(Path(found.document["sandbox"], "runs", found.document["run"])).ranks
    assert [(rank.rank, rank.host) for rank in ranks] == [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2")]
    print(f"named {(named_ns - ranks[0].step_start_ns[10]) / 1e9:.1f} s after the tenth step")
    assert named_ns - ranks[0].end_ns < 30e9  # how long 30 steps take is up to the machine


def requeued(user: User, cluster: Cluster, patch: Path, how: str, budget: str = "6m") -> tuple[Ran, list[dict], list[dict]]:
    """A pair whose job is taken away while its second start is measured, and goes on; the starts kept before, and at the end."""
    assert user.trainflash("sandbox", "create", str(user.project)).code == 0
    process = started(user, *trying(patch, budget))
    try:
        box = sandbox_of(user)
        deadline = time.monotonic() + 700
        while not list(box.glob("pairs/*/start-02-candidate/process-*.json")):
            assert time.monotonic() < deadline and process.poll() is None, ended(process)
            time.sleep(0.2)
        job = cluster.wait_for("RUNNING")
        cluster.ask("scontrol", "requeue", job) if how == "killed" else cluster.ask("scancel", "--signal=USR2", "--batch", job)
        assert cluster.wait_for("PENDING") == job
        before = starts_of(box)
        time.sleep(10)  # what is left of the first attempt must be over: Slurm itself leaves two minutes for that
        cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")  # a requeued job waits for two minutes otherwise
        found = ended(process, 1200)
    finally:
        process.kill()
    assert f"job {job} was requeued" in found.err
    return found, before, starts_of(box)


def trying(patch: Path, budget: str = "6m") -> tuple[str, ...]:
    return ("optimize", "try", "--patch", str(patch), "--budget", budget, "--json", "--on", "slurm", "--", "python", "train.py")


def sandbox_of(user: User) -> Path:
    (document,) = Path(user.environment["XDG_STATE_HOME"]).glob("trainflash/*/sandbox.json")
    return document.parent


def starts_of(box: Path) -> list[dict]:
    (kept,) = box.glob("pairs/*/starts.jsonl")
    return [json.loads(line) for line in kept.read_text().splitlines()]


@pytest.mark.parametrize("how", ["killed", "warned"])
def test_a_job_that_is_requeued_in_the_middle_of_a_pair_ends_with_the_verdict(submitter, cluster, tmp_path, how):
    found, before, starts = requeued(submitter, cluster, faster_patch(submitter, tmp_path), how)
    assert found.code == 0, found.err
    (experiment,) = found.document["experiments"]
    assert (experiment["n"], experiment["decision"]) == (1, "accepted")
    assert (len(before), starts[:1]) == (1, before)
    assert "1 of the starts were measured before and count on" in " ".join(experiment["verdict"]["reasons"])
    assert not list(Path(submitter.environment["XDG_STATE_HOME"]).glob("trainflash/jobs/*"))


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("change", ["faster", "nothing"])
def test_a_requeued_pair_gets_the_verdict_that_it_gets_undisturbed(submitter, cluster, tmp_path, change):
    """The same decision, intervals that overlap, and each start counted once."""
    patch = faster_patch(submitter, tmp_path)
    if change == "nothing":
        source = (submitter.project / "train.py").read_text()
        (submitter.project / "train.py").write_text(source.replace("    return value\n", "    found = value\n    return found\n"))
        patch.write_text(submitter.git("diff"))
        submitter.git("checkout", "--quiet", "train.py")
    assert submitter.trainflash("sandbox", "create", str(submitter.project)).code == 0
    undisturbed = submitter.trainflash(*trying(patch, "10m"), timeout=1200)
    assert undisturbed.code in (0, 4), undisturbed.err
    alone = starts_of(sandbox_of(submitter))
    assert submitter.trainflash("sandbox", "discard", "--all").code == 0
    disturbed, before, starts = requeued(submitter, cluster, patch, "killed", "10m")
    one, other = (found.document["experiments"][0] for found in (undisturbed, disturbed))
    print(change, *((each["decision"], each["verdict"]["speedup"], each["verdict"]["reasons"]) for each in (one, other)), sep="\n")
    assert one["decision"] == other["decision"] == {"faster": "accepted", "nothing": "rejected"}[change]
    assert one["verdict"]["speedup"]["ci_low"] <= other["verdict"]["speedup"]["ci_high"]
    assert other["verdict"]["speedup"]["ci_low"] <= one["verdict"]["speedup"]["ci_high"]
    assert [start["n"] for start in starts] == list(range(1, len(starts) + 1)) and starts[: len(before)] == before
    for judged, kept in ((one, alone), (other, starts)):
        assert judged["verdict"]["starts"] == len([start for start in kept if start["y"] is not None])


def test_a_queue_that_never_schedules_has_a_limit_and_a_line(submitter, cluster):
    cluster.ask("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=test")
    try:
        found = submitter.trainflash("diagnose", "--json", "--on", "slurm", "--slurm-wait", "5s", "--", "python", "train.py")
    finally:
        cluster.ask("scontrol", "update", "NodeName=n1,n2", "State=RESUME")
    assert found.code == 3
    error = found.document["error"]
    assert "did not start within 5 s" in error["message"] and "it was cancelled" in error["message"] and "--slurm-wait" in error["mend"]
    assert "no node was free to be asked" in found.err
    assert cluster.jobs() == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--slurm-partition", "nowhere"), "Invalid partition"),
        (("--slurm-constraint", "a100"), "Invalid feature"),
        (("--slurm-option", "nodes=9"), "can never start: Partition"),
        (("--slurm-partition", "short", "--slurm-time", "2h"), "can never start: PartitionTimeLimit"),
    ],
)
def test_what_the_cluster_cannot_do_is_refused_in_its_words(submitter, cluster, options, said):
    found = submitter.trainflash("diagnose", "--json", "--on", "slurm", *options, "--", "python", "train.py")
    assert (found.code, found.document["status"]) == (2, "error"), found.err
    assert said in found.document["error"]["message"] and found.document["error"]["mend"]
    assert cluster.jobs() == {}


def test_an_interrupt_cancels_the_job_and_ends_every_rank(submitter, cluster):
    port = str(free_ports(1)[0])
    words = ("--slurm-option", "ntasks=2", "--", "srun", "python", "ranks.py", "steps=100000", f"port={port}")
    process = started(submitter, "diagnose", "--json", "--steps", "90000", "--on", "slurm", *words)
    deadline = time.monotonic() + 120
    while len(children_of(f"python ranks.py steps=100000 port={port}")) < 2:
        assert time.monotonic() < deadline and process.poll() is None, ended(process)
        time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    found = ended(process, 60)
    assert (found.code, found.document["status"]) == (130, "error")
    deadline = time.monotonic() + 30
    while cluster.jobs() or children_of(f"port={port}"):
        assert time.monotonic() < deadline, (cluster.jobs(), children_of(f"port={port}"))
        time.sleep(0.3)


def test_the_program_s_failure_and_its_code_come_through(submitter):
    (submitter.project / "broken.py").write_text("import torch\nraise SystemExit('no data here')\n")
    submitter.git("add", "--all")
    submitter.git("commit", "--quiet", "--message", "broken")
    found = submitter.trainflash("diagnose", "--json", "--on", "slurm", "--", "python", "broken.py")
    assert (found.code, found.document["status"]) == (6, "failed")
    assert "no data here" in found.document["error"]["output"]


def test_ranks_of_srun_end_with_the_run_that_started_them(submitter, cluster, tmp_path):
    """A step outlives its srun unless that is asked to end it; here the tree is ended as after a measured start."""
    environment = {**os.environ, **cluster.environment}
    script = tmp_path / "sleeper.py"
    script.write_text("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(300)\n")
    parent = subprocess.Popen(["sh", "-c", f"srun --ntasks=2 python {script}; true"], env=environment)
    try:
        deadline = time.monotonic() + 60
        while len([pid for pid in children_of(f"python {script}") if pid not in supervise.living(os.getpid())]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert supervise.kill(parent.pid) == []
        deadline = time.monotonic() + 20
        while children_of(f"python {script}"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        parent.kill()
        parent.wait()


def test_settings_send_a_command_to_the_cluster(submitter, cluster):
    (submitter.project / "trainflash.toml").write_text('on = "slurm"\n\n[slurm]\npartition = "main"\noptions = ["comment=settings"]\n')
    process = started(submitter, "diagnose", "--json", "--steps", "40", "--", "python", "train.py")
    job = cluster.wait_for("RUNNING")
    shown = cluster.ask("scontrol", "show", "job", job)
    found = ended(process)
    assert found.code == 0, found.err
    assert "Comment=settings" in shown and "JobName=trainflash" in shown
    assert (found.document["status"], found.document["protection"] != "in_place") == ("ok", True)


def test_several_knobs_are_tried_at_once_and_the_best_is_kept(submitter):
    """Each is an experiment of its own in a job of its own, and what came of it stands in the sandbox that asked."""
    faster_patch(submitter, submitter.project.parent)
    assert submitter.trainflash("diagnose", "--steps", "60", "--json", "--", "python", "train.py").code == 0
    words = ("memoize_function", "--also", "dataloader_workers=1", "--budget", "5m", "--on", "slurm")
    found = submitter.trainflash("optimize", "try", *words, "--json", "--", "python", "train.py", timeout=850)
    assert found.code == 0, found.err
    assert "memoize_function: job" in found.err and "dataloader_workers=1: job" in found.err
    first, second = found.document["experiments"]
    assert (first["knob"], first["decision"], found.document["accepted"]) == ("memoize_function", "accepted", [1])
    assert second["decision"] != "accepted" and second["verdict"]["reasons"]
    (box,) = (path.parent for path in Path(submitter.environment["XDG_STATE_HOME"]).glob("trainflash/*/sandbox.json"))
    assert "cache" in (box / "worktree" / "train.py").read_text()
    assert "cache" not in (submitter.project / "train.py").read_text()


def test_a_pair_of_srun_jobs_comes_to_a_verdict_and_leaves_the_original_alone(submitter, tmp_path):
    """Both sides run as steps of one allocation, one after the other, in copies of the project that all nodes see."""
    source = (submitter.project / "ranks.py").read_text()
    (submitter.project / "ranks.py").write_text(source.replace("ctx.ms / 1000", "ctx.ms / 3000"))
    patch = tmp_path / "no_sleep.diff"
    patch.write_text(submitter.git("diff"))
    submitter.git("checkout", "--quiet", "ranks.py")
    before = fingerprint(submitter.project)
    assert submitter.trainflash("sandbox", "create", str(submitter.project)).code == 0
    job = ("slow=backward", "ms=120", "steps=300", f"port={free_ports(1)[0]}")
    options = (
        "--budget",
        "8m",
        "--on",
        "slurm",
        "--slurm-option",
        "nodes=2",
        "--slurm-option",
        "ntasks=2",
        "--slurm-option",
        "ntasks-per-node=1",
    )
    words = ("--patch", str(patch), *options, "--json", "--", "srun", "python", "ranks.py", *job)
    found = submitter.trainflash("optimize", "try", *words, timeout=850)
    (experiment,) = found.document["experiments"]
    assert experiment["decision"] in {"accepted", "inconclusive"}, (
        found
    )  # on a busy machine, where nothing is frozen, a start may not count
    assert (experiment["verdict"]["protection"], experiment["verdict"]["fidelity"]["verdict"]) == ("manifest", "same")
    (kept,) = Path(submitter.environment["XDG_STATE_HOME"]).glob("trainflash/*/pairs/*/starts.jsonl")
    starts = [json.loads(line) for line in kept.read_text().splitlines()]
    assert {start["schedule"] for start in starts} == {"sequential"}
    gains = [start["y"] for start in starts if start["y"] is not None]
    assert gains and all(gain > 0 for gain in gains)
    assert fingerprint(submitter.project) == before
