"""Submitting: what is asked of Slurm, what it answers, and what is said where it is not there. No cluster; see integration/test_slurm."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest

from trainflash import config
from trainflash.cli import cli, main
from trainflash.errors import Inconclusive, UsageError
from trainflash.launch import daemons, slurm
from trainflash.launch.slurm import login as watching
from trainflash.launch.slurm import queue
from trainflash.launch.slurm.job import PROGRESS, RESULT, TypedCommand
from trainflash.launch.slurm.queue import JobState
from trainflash.workflow import submitting


def test_what_is_typed_wins_over_the_settings(tmp_path):
    (tmp_path / "trainflash.toml").write_text('on = "slurm"\n[slurm]\npartition = "a"\ntime = "2h"\noptions = ["nodes=2", "qos=low"]\n')
    settings = config.load(tmp_path, {})
    found = slurm.wanted(settings.slurm, partition="b", options=("nodes=4", "exclusive", "--gres=gpu:4"))
    assert (settings.on, found.partition, found.time_s) == ("slurm", "b", 7200)
    assert found.parameters() == {"partition": "b", "nodes": "4", "qos": "low", "exclusive": True, "gres": "gpu:4"}
    assert found.of_a_node() == {"partition": "b", "qos": "low"}


@pytest.mark.parametrize(("budget_s", "time_s"), [(None, 3600), (600, 3600), (7200, 16200)])
def test_a_job_has_time_for_twice_its_budget(budget_s, time_s):
    assert slurm.wanted({}, budget_s=budget_s).time_s == time_s


@pytest.mark.parametrize(
    ("settings", "options", "said"),
    [
        ({"partitions": "a"}, (), "unknown setting 'partitions'"),
        ({}, ("output=log",), "set by trainflash itself"),
        ({}, ("time=5",), "option of its own"),
        ({}, ("=5",), "no option of sbatch"),
        ({}, ("nodes 2",), "no option of sbatch"),
    ],
)
def test_options_that_a_job_cannot_have_are_refused(settings, options, said):
    with pytest.raises(UsageError, match=said):
        slurm.wanted(settings, options=options)


@pytest.mark.parametrize("text", ['on = "moon"', "slurm = 3", '[slurm]\noptions = "nodes=2"', '[slurm]\ntime = "never"'])
def test_settings_that_are_none_are_refused_by_name(tmp_path, text):
    (tmp_path / "trainflash.toml").write_text(text)
    with pytest.raises(UsageError, match=r"trainflash.toml: (on|slurm) = "):
        config.load(tmp_path, {})


def test_a_job_is_read_from_one_line():
    line = (
        "JobId=26 JobName=trainflash diagnose JobState=PENDING Reason=Nodes_required_for_job_are_DOWN,_DRAINED Dependency=(null) "
        "Requeue=1 Restarts=2 BatchFlag=1 ExitCode=0:0 NodeList=(null) Comment=a b=c \n"
    )
    assert queue.read(line) == JobState("PENDING", "Nodes required for job are DOWN, DRAINED", "", 2, "0:0")
    assert queue.read("JobId=3 JobState=RUNNING Reason=None NodeList=n[1-2] Restarts=0").nodes == "n[1-2]"
    assert JobState("PENDING", "PartitionTimeLimit").hopeless and not JobState("PENDING", "Priority").hopeless
    assert not JobState("RUNNING", "BadConstraints").hopeless and JobState("TIMEOUT").over and not JobState("COMPLETING").over


class Clock:
    """Time that moves by one second with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """`watch` of a job whose states are given; what it said and relayed."""
    said: list[str] = []
    monkeypatch.setattr(watching.time, "sleep", lambda _: None)

    def watch(states, *, wait_s: float = 100.0, at=None):
        left = list(states)

        def state(_: str) -> JobState | None:
            now = left.pop(0) if len(left) > 1 else left[0]
            if at is not None:
                at(len(states) - len(left))
            return now

        monkeypatch.setattr(watching.queue, "state", state)
        wanted = slurm.Wanted(wait_s=wait_s)
        return watching.watch("7", tmp_path, wanted, said.append, said.append, Clock())

    return watch, said


def test_a_job_is_followed_through_a_requeue_to_its_code(watched, tmp_path):
    watch, said = watched

    def at(look: int) -> None:
        with (tmp_path / PROGRESS).open("a") as file:
            file.write(f"look {look}\n")
        if look == 5:
            (tmp_path / RESULT).write_text(json.dumps({"code": 4}))

    run = JobState("RUNNING", nodes="n1")
    code = watch([JobState("PENDING", "Priority"), run, JobState("PENDING", "BeginTime", restarts=1), run, run, run], at=at)
    assert code == 4
    assert "".join(line for line in said if line.startswith("look")).split("\n")[:5] == [f"look {n}" for n in range(1, 6)]
    assert [line for line in said if line.startswith("job")] == [
        "job 7 waits in the queue (Priority)",
        "job 7 runs on n1",
        "job 7 was requeued; it goes on with what it had measured",
        "job 7 waits in the queue (BeginTime)",
        "job 7 runs on n1",
    ]


@pytest.mark.parametrize(
    ("states", "error", "message"),
    [
        ([JobState("PENDING", "Resources")], Inconclusive, "did not start within 100 s|did not start within 2 min"),
        ([JobState("PENDING", "BadConstraints")], UsageError, "can never start: BadConstraints"),
        ([JobState("RUNNING"), JobState("TIMEOUT", "TimeLimit")], Inconclusive, "ended without a result: TIMEOUT, TimeLimit"),
        ([JobState("RUNNING"), JobState("FAILED", "NonZeroExitCode")], Inconclusive, "ended without a result: FAILED"),
        ([JobState("RUNNING"), None], Inconclusive, "ended without a result: RUNNING"),
        ([None], Inconclusive, "knows it no longer"),
    ],
)
def test_a_job_that_comes_to_nothing_is_told_with_a_mend(watched, states, error, message):
    watch, _ = watched
    with pytest.raises(error, match=message) as raised:
        watch(states)
    assert raised.value.mend


def test_a_scheduler_that_cannot_be_asked_for_a_while_is_waited_for(watched, tmp_path):
    watch, _ = watched
    at = lambda look: look == 40 and (tmp_path / RESULT).write_text('{"code": 0}')  # noqa: E731
    assert watch([JobState(queue.UNKNOWN)] * 50, at=at) == 0


def test_a_command_that_was_ended_by_a_signal_has_no_code(watched, tmp_path):
    watch, _ = watched
    (tmp_path / RESULT).write_text('{"code": -9}')
    with pytest.raises(Inconclusive, match="ended by signal 9"):
        watch([JobState("RUNNING")])


ENGINE = """import random, sys


def main():
    print(sys.argv[1:])
    print("progress", file=sys.stderr)
    return 3
"""


@pytest.mark.parametrize(("restarts", "words"), [("0", "--on here"), ("2", "--on again")])
def test_a_job_types_the_command_again(tmp_path, monkeypatch, restarts, words):
    monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    module, project = tmp_path / "packages" / "trainflash", tmp_path / "project"
    for folder in (module, project):
        folder.mkdir(parents=True)
    (module / "__init__.py").touch()
    (module / "cli.py").write_text(ENGINE)
    (project / "random.py").write_text("raise SystemExit('not what we import')\n")
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    command = TypedCommand(
        ("log", "--json"), ("--", "python", "a b.py"), str(project), str(tmp_path), ("--on", "here"), ("--on", "again"), {"COLUMNS": "7"}
    )
    assert command() == 3
    assert (tmp_path / "answer.txt").read_text() == str(["log", "--json", *words.split(), "--", "python", "a b.py"]) + "\n"
    assert (tmp_path / "progress.txt").read_text() == "progress\n"
    assert json.loads((tmp_path / RESULT).read_text()) == {"code": 3}


def shim(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755 | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("srun", "said"),
    [
        (f'echo "$@" | grep -q partition=a && while [ "$1" != {sys.executable} ]; do shift; done; shift; exec {sys.executable} -I -S "$@"',
         "lacks the package: No module named"),
        ('echo "slurmstepd: error: execve(): /env/bin/python: No such file or directory" >&2; exit 2', "cannot start .*No such file"),
        ('echo "srun: error: Unable to allocate resources: Invalid account" >&2; exit 1', "Slurm refuses: .*Invalid account"),
        ("echo 'trainflash-node:{\"node\": \"n7\", \"unseen\": [\"/home/me/p\"], \"version\": \"0\"}'", "n7 does not see /home/me/p"),
        ("echo 'trainflash-node:{\"node\": \"n7\", \"unseen\": [], \"version\": \"0.0.0\"}'", "n7 has trainflash 0.0.0, here is"),
    ],
)  # fmt: skip
def test_a_node_that_cannot_run_the_job_is_told_before_submitting(tmp_path, monkeypatch, srun, said):
    shim(tmp_path, "srun", srun)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UsageError, match=said) as raised:
        slurm.ask_a_node(slurm.wanted({"partition": "a"}), [tmp_path])
    assert raised.value.mend


def test_a_full_cluster_is_not_asked(tmp_path, monkeypatch):
    shim(tmp_path, "srun", 'echo "srun: error: Unable to allocate resources: Requested nodes are busy" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert slurm.ask_a_node(slurm.Wanted(), [tmp_path]) == ""


def test_no_slurm_and_no_submitit_are_told_with_the_mend(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["diagnose", "--json", "--on", "slurm", "--", "python", "train.py"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "sbatch was not found" in error["message"] and "login node" in error["mend"]
    for name in ("sbatch", "srun", "scontrol", "scancel"):
        shim(tmp_path, name, "exit 0")
    monkeypatch.setattr("trainflash.launch.slurm.submission.find_spec", lambda _: None)
    assert main(["diagnose", "--json", "--on", "slurm", "--", "python", "train.py"]) == 2
    assert "pip install submitit" in json.loads(capsys.readouterr().out)["error"]["mend"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("diagnose", "--slurm-time", "5m", "--", "python"), "--slurm-time goes with --on slurm"),
        (("diagnose", "--on", "slurm", "--pid", "1"), "starts? your program"),
        (("gate", "compare", "--on", "slurm", "--metrics", "m.json"), "starts? your program"),
        (("diagnose", "--on", "moon", "--", "python"), "moon"),
    ],
)
def test_options_without_a_job_are_refused(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*words[:1], *words[1:]]) == 2
    assert re.search(said, " ".join(capsys.readouterr().err.split()))


def test_the_whole_command_travels_and_knows_where_it_is(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    seen = {}

    def submit(typed, settings, given, **more):
        seen.update(typed=typed, given=given, **more)
        return submitting.Came(4, '{"schema": "x"}\n')

    monkeypatch.setattr(submitting, "submit_and_wait", submit)
    ours = ["optimize", "try", "pin_memory=1", "--budget", "10m", "--on", "slurm", "--slurm-option", "nodes=2", "--json"]
    words = [*ours, "--", "srun", "--on", "x"]
    assert main(words) == 4
    assert capsys.readouterr().out == '{"schema": "x"}\n'
    assert seen["typed"].words == tuple(ours) and seen["typed"].owners == ("--", "srun", "--on", "x")
    assert (seen["given"]["options"], seen["given"]["budget_s"]) == (("nodes=2",), 600)
    inside = [*seen["typed"].words, *seen["typed"].again, *seen["typed"].owners]
    context = cli.commands["optimize"].commands["try"].make_context("try", inside[2:])
    assert context.params["on"] == config.AGAIN and context.params["cmd"] == ("srun", "--on", "x")


@pytest.mark.parametrize(
    ("argv", "nodes", "word"),
    [
        (("srun", "python", "a.py"), "1", "srun"),
        (("/usr/bin/srun", "-n", "4", "python"), "1", "srun"),
        (("timeout", "60", "srun", "python"), "1", "srun"),
        (("bash", "-c", "export A=1; srun -n 4 python a.py"), "1", "srun"),
        (("bash", "run.sh"), "1", "srun"),
        (("./run.sh",), "1", "srun"),
        (("sh", "plain.sh"), "1", ""),
        (("python", "a.py", "--launcher", "srun"), "1", ""),
        (("torchrun", "a.py", "srun"), "1", ""),
        (("mpirun", "-n", "2", "python", "a.py"), "1", ""),
        (("mpirun", "-n", "2", "python", "a.py"), "2", "mpirun"),
        (("mpiexec", "--hostfile", "hosts", "python", "a.py"), "1", "mpiexec"),
        (("python", "a.py"), "2", ""),
    ],
)
def test_commands_whose_processes_a_daemon_starts(tmp_path, argv, nodes, word):
    (tmp_path / "run.sh").write_text("#!/bin/sh\nset -e\n  srun --ntasks=2 python a.py\n")
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n# srun would do\necho srunning\npython a.py\n")
    assert daemons.asked(argv, tmp_path, {"SLURM_JOB_NUM_NODES": nodes}) == word
