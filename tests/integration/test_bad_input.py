"""Bad input gets one clear line with the mend and the right code, and loses nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from owner import fingerprint


def assert_says(ran, code: int, *words: str) -> None:
    assert ran.code == code, ran.err
    assert "src/trainflash/" not in ran.err, "a traceback of ours"
    for word in words:
        assert word in ran.err, ran.err
    assert "mend: " in ran.err, "the mend is missing"


@pytest.mark.parametrize(
    "verb",
    [["diagnose"], *(pytest.param(verb, marks=pytest.mark.full) for verb in (["tune", "."], ["optimize", "plan"], ["optimize", "auto"]))],
)
def test_no_command_after_the_dashes(user, verb):
    assert_says(user.trainflash(*verb, "--"), 2, "no training command", "--")


def test_a_program_that_does_not_exist(user):
    assert_says(user.trainflash("diagnose", "--", "no-such-python", "train.py"), 2, "no-such-python")


def test_a_script_that_does_not_exist(user):
    assert_says(user.trainflash("diagnose", "--", sys.executable, "missing.py"), 6, "missing.py")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import no_such_module\n", ["No module named 'no_such_module'"]),
        ("import torch\nprint('no training here')\n", ["no training step", "torch was imported"]),
        ("raise SystemExit(3)\n", ["3"]),
    ],
)
def test_a_program_that_fails_or_never_trains(user, source, words):
    (user.project / "train.py").write_text(source)
    before = fingerprint(user.project)
    assert_says(user.trainflash("diagnose", "--", sys.executable, "train.py"), 6, *words)
    assert fingerprint(user.project) == before


@pytest.mark.full
def test_a_program_that_fails_at_step_three(user):
    source = (
        (user.project / "train.py")
        .read_text()
        .replace("loss.backward()", "loss.backward()\n        assert optimizer.state_dict()['state'] or epoch < 0 or loader.dead()")
    )
    (user.project / "train.py").write_text(source)
    ran = user.trainflash("diagnose", "--", sys.executable, "train.py")
    assert_says(ran, 6, "AttributeError")


@pytest.mark.full
def test_what_a_program_did_before_it_died_can_be_diagnosed(user):
    source = (user.project / "train.py").read_text()
    (user.project / "train.py").write_text(f"{source}\n__import__('os').abort()\n")
    ran = user.trainflash("diagnose", "--", sys.executable, "train.py")
    assert_says(ran, 6, "signal 6", "complete steps are kept", "trainflash diagnose --run diagnose-001")
    again = user.trainflash("diagnose", "--run", "diagnose-001")
    assert again.code == 0 and "Fwd" in again.out, again.err


def test_an_interpreter_without_torch(user, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    ran = user.trainflash("diagnose", "--", str(tmp_path / "bare" / "bin" / "python"), "train.py")
    assert_says(ran, 6, "No module named 'torch'")


def test_a_program_without_torch(user):
    (user.project / "train.py").write_text("print('just a script')\n")
    assert_says(user.trainflash("diagnose", "--", sys.executable, "train.py"), 6, "torch")


@pytest.mark.full
@pytest.mark.parametrize(("flags", "environment"), [(["-I"], "None"), ([], "{**os.environ, 'PYTHONPATH': ''}")])
def test_a_child_that_the_probe_cannot_enter_is_named_and_not_waited_for(user, flags, environment):
    (user.project / "start.py").write_text(
        f"import os, subprocess, sys\nsubprocess.run([sys.executable, *{flags}, 'train.py'], env={environment}, check=True)\n"
    )
    training = (user.project / "train.py").read_text().replace("range(40)", "range(40000)")
    (user.project / "train.py").write_text(training)
    ran = user.trainflash("diagnose", "--", sys.executable, "start.py")
    assert_says(ran, 6, "the probe could not enter it", "train.py", "import trainflash_probe")


@pytest.mark.full
@pytest.mark.parametrize("first", ["", "import torch\n"], ids=["before torch", "after torch"])
def test_a_script_may_let_the_probe_in_itself(user, first):
    by_hand = "import os, sys\nsys.path.append(os.environ['TRAINFLASH_PROBE'])\nimport trainflash_probe\n"
    source = (user.project / "train.py").read_text()
    (user.project / "train.py").write_text(first + by_hand + source)
    ran = user.trainflash("diagnose", "--steps", "160", "--json", "--", sys.executable, "-I", "train.py")
    assert ran.code == 0, ran.err
    assert ran.document["findings"][0]["kind"] == "input_cpu"


def test_a_project_that_is_missing(user):
    assert_says(user.trainflash("sandbox", "create", "nowhere"), 2, "nowhere")


def test_a_project_that_is_a_file(user):
    assert_says(user.trainflash("sandbox", "create", "train.py"), 2, "train.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_project_that_cannot_be_read(user):
    user.project.chmod(0)
    try:
        assert_says(user.trainflash("sandbox", "create", str(user.project)), 2, "read")
    finally:
        user.project.chmod(0o755)


@pytest.mark.full
def test_the_same_sandbox_twice(user, tmp_path):
    base = str(tmp_path / "here")
    assert user.trainflash("sandbox", "create", ".", "--base", base).code == 0
    assert_says(user.trainflash("sandbox", "create", ".", "--base", base), 2, base)
    assert user.trainflash("sandbox", "status", "--json").document["status"] == "ok"


def test_a_knob_that_does_not_exist(user):
    assert_says(user.trainflash("explain", "memoise_function"), 2, "memoize_function")


def test_commands_that_need_a_sandbox_say_so(user):
    for verb in (["log"], ["report"], ["sandbox", "status"], ["writeback", "--accepted"], ["verify", "--experiment", "1", "--", "x"]):
        assert_says(user.trainflash(*verb), 2, "sandbox")


def test_an_unknown_option_is_named(user):
    assert_says(user.trainflash("diagnose", "--stesp", "3", "--", "python"), 2, "--stesp")


def test_a_change_that_nobody_can_agree_to(user):
    assert_says(user.trainflash("tune", ".", "--allow", "everything", "--", sys.executable, "train.py"), 2, "everything", "numerics")


def test_errors_are_one_document_with_json(user):
    ran = user.trainflash("sandbox", "create", "nowhere", "--json")
    assert ran.code == 2
    assert ran.document["status"] == "error"
    assert ran.document["error"]["message"]
    assert ran.document["error"]["mend"]


def interrupted(user, arguments: list[str], after: str, delay: float = 0.0) -> tuple[int, str]:
    """Type the command, press Ctrl-C once `after` was said on stderr (and `delay` seconds passed)."""
    running = subprocess.Popen(
        user.command(*arguments), cwd=user.project, env=user.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    said = ""
    for line in running.stderr:
        said += line
        if after in line:
            break
    time.sleep(delay)
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    return running.returncode, said + rest


def processes_of(folder: Path) -> list[int]:
    """Living processes whose command line or working directory lies in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes().decode(errors="replace") + " " + os.readlink(entry / "cwd")
            except OSError:
                continue
            if str(folder) in text:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(("stage", "delay"), [pytest.param("sandbox", 0.0, marks=pytest.mark.full), ("diagnose", 2.0)])
def test_ctrl_c_ends_everything_and_loses_nothing(user, stage, delay):
    before = fingerprint(user.project)
    code, said = interrupted(user, ["tune", ".", "--", sys.executable, "train.py"], stage, delay)
    assert code == 130, said
    assert "interrupted" in said
    assert "src/trainflash/" not in said, "a traceback of ours"
    time.sleep(0.5)
    assert processes_of(user.project.parent) == []
    assert fingerprint(user.project) == before
    again = user.trainflash("diagnose", "--steps", "12", "--json", "--", sys.executable, "train.py")
    assert again.code == 0, again.err


def test_sigkill_leaves_no_process_and_the_next_command_mends(user):
    before = fingerprint(user.project)
    running = subprocess.Popen(
        user.command("diagnose", "--", sys.executable, "train.py"),
        cwd=user.project,
        env=user.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in running.stderr:
        if line.startswith("diagnose"):
            break
    time.sleep(2)
    running.kill()
    running.wait(timeout=30)
    time.sleep(1)
    assert processes_of(user.project.parent) == []
    again = user.trainflash("diagnose", "--steps", "12", "--json", "--", sys.executable, "train.py")
    assert again.code == 0, again.err
    assert list(Path(again.document["sandbox"], "layers").glob("*")) == []
    assert fingerprint(user.project) == before


@pytest.mark.full
@pytest.mark.parametrize("stage", ["fidelity", "start 1"])
def test_ctrl_c_while_verifying_keeps_the_log(user, stage):
    before = fingerprint(user.project)
    code, said = interrupted(user, ["tune", ".", "--", sys.executable, "train.py"], stage, 3.0)
    assert code == 130, said
    assert fingerprint(user.project) == before
    entries = user.trainflash("log", "--json").document["entries"]
    assert [entry["kind"] for entry in entries][:2] == ["sandbox", "diagnosis"]
    assert processes_of(user.project.parent) == []


@pytest.mark.full
def test_a_project_that_was_cloned_again_gets_a_new_sandbox(user):
    first = user.trainflash("sandbox", "create", ".", "--json").document
    shutil.rmtree(user.project / ".git")
    user.git("init", "--quiet")
    user.git("add", "--all")
    user.git("commit", "--quiet", "--message", "again")
    assert_says(user.trainflash("sandbox", "status"), 2, "no sandbox")
    second = user.trainflash("sandbox", "create", ".", "--json").document
    assert (second["status"], second["sandbox"]) == ("ok", first["sandbox"])
    assert user.trainflash("sandbox", "status").code == 0
