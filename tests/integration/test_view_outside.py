"""Slurm's commands called inside of a view: stand-ins answer, on PATH and by their own path. The commands here are scripts of the test."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from trainflash import sandbox
from trainflash.launch import daemons
from trainflash.schema import Command
from trainflash.view import open_view, protection

CALL = "{} -n 2 touch step.txt; echo said $?; ls step.txt"


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A sandbox on a machine whose `srun`, `sbatch` and `mpirun` run what they are given, in the project itself."""
    project, tools = tmp_path / "project", tmp_path / "tools"
    for folder in (project, tools, tmp_path / "home"):
        folder.mkdir()
    for name in ("srun", "sbatch", "mpirun"):
        (tools / name).write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    (project / "train.py").write_text("print('owner')\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=project, check=True)
    return sandbox.create(project)


def called(box, script: str, **options) -> tuple[str, Path]:
    """What a shell script prints in a view, and the run's folder."""
    run_dir = Path(box.directory, "runs", f"run-{len(list(Path(box.directory).glob('runs/*')))}")
    run_dir.mkdir(parents=True)
    view = open_view(box, "candidate", run_dir, **options)
    try:
        argv = view.argv(["sh", "-c", script])
        done = subprocess.run(argv, cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True, timeout=60, check=False)
    finally:
        view.close()
    return done.stdout + done.stderr, run_dir


@pytest.mark.parametrize("name", ["srun", "sbatch"])
@pytest.mark.parametrize("how", ["by name", "by path"])
def test_a_mount_view_refuses_and_tells(box, name, how):
    if protection(box)[0] != "mount":
        pytest.skip("no mount view here")
    said, run_dir = called(box, CALL.format(shutil.which(name) if how == "by path" else name))
    assert "said 1" in said and f"trainflash: the program calls {name}, whose" in said and "it was refused" in said
    assert "step.txt\n" not in said.replace("'step.txt'", "")
    what, mend = daemons.refused(run_dir)
    assert what.startswith(f"the program calls {name}") and mend
    assert isinstance(json.loads((run_dir / "notice.jsonl").read_text())["pid"], int)
    assert not Path(box.project, "step.txt").exists()


def test_the_next_run_of_a_command_that_called_srun_gets_copies(box, tmp_path):
    command, other = Command(("python", "hidden.py")), Command(("python", "train.py"))
    _, run_dir = called(box, CALL.format("srun"))
    assert (daemons.of(box, "candidate", command), daemons.learn(box, command, run_dir)) == ("", "srun")
    assert daemons.learn(box, command, run_dir) == "srun"  # known already: written once
    assert len(Path(box.directory, "daemons.jsonl").read_text().splitlines()) == 1
    assert (daemons.of(box, "baseline", command), daemons.of(box, "candidate", other)) == ("srun", "")
    fresh = sandbox.create(Path(box.project), tmp_path / "elsewhere")
    daemons.hand_on(box, fresh)
    assert daemons.of(fresh, "candidate", command) == "srun"


def test_a_submitted_job_is_nothing_to_give_copies_for(box):
    _, run_dir = called(box, CALL.format("sbatch"))
    assert daemons.learn(box, Command(("python", "train.py")), run_dir) == ""


def test_mpi_that_asks_for_another_machine_is_refused(box):
    if protection(box)[0] != "mount":
        pytest.skip("no mount view here")
    said, run_dir = called(box, "$OMPI_MCA_plm_rsh_agent other-machine orted; echo said $?")
    assert "said 1" in said and "the program calls mpirun" in said
    assert daemons.learn(box, Command(("python", "train.py")), run_dir) == "mpirun"


@pytest.mark.parametrize("only", ["landlock", "manifest"])
def test_in_copies_a_step_runs_in_the_copy_and_a_job_is_refused(box, only):
    if only == "landlock" and protection(box)[0] == "manifest":
        pytest.skip("no Landlock here")
    said, run_dir = called(box, CALL.format("srun"), only=only)
    assert "said 0" in said and not Path(box.project, "step.txt").exists()
    assert daemons.refused(run_dir) == ("", "")
    said, run_dir = called(box, CALL.format("sbatch"), only=only)
    assert "said 1" in said and daemons.refused(run_dir)[0].startswith("the program calls sbatch")


def test_a_view_that_is_chosen_for_want_of_a_better_one_tells_of_steps(box, monkeypatch):
    from trainflash.view import trial

    monkeypatch.setitem(trial._tried, (box.directory, os.geteuid()), trial.Strategy("manifest", "", os.path.join(box.directory, "layers")))
    said, run_dir = called(box, CALL.format("srun"))
    assert "said 0" in said and "step.txt" in said and not Path(box.project, "step.txt").exists()
    assert daemons.learn(box, Command(("python", "hidden.py")), run_dir) == "srun"
