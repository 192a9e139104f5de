"""`trainflash doctor` on this machine, and on one that lacks things."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainflash.report import health as shown
from trainflash.schema.health import Check, Health


def doctor(tmp_path: Path, **environment: str) -> tuple[int, dict]:
    variables = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), **environment}
    command = [sys.executable, "-m", "trainflash", "doctor", "--json"]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    document = json.loads(done.stdout)
    return done.returncode, {"status": document["status"]} | {check["name"]: check for check in document["checks"]}


def test_what_is_tried_is_found_and_nothing_stays(tmp_path):
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    code, found = doctor(tmp_path, PATH=beside)
    assert (code, found["status"]) == (0, "ok")
    assert found["git"]["state"] == "ok"
    assert found["training environment"]["state"] == "ok" and "the probe gets in" in found["training environment"]["found"]
    assert found["protection of the original"]["found"].split(":")[0] in ("mount view", "landlock", "manifest")
    assert not [path for path in (tmp_path / "state").rglob("*") if path.is_file()]


def test_without_git_nothing_works_and_it_is_said(tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    code, found = doctor(tmp_path, PATH=str(empty))
    assert (code, found["status"]) == (2, "failed")
    assert (found["git"]["state"], found["git"]["mend"]) == ("missing", "install git 2.30 or newer")
    assert found["protection of the original"]["state"] == "missing"
    assert found["training environment"]["found"] == "no python on PATH"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "does not start"),
        (f'unset PYTHONPATH; exec {sys.executable} "$@"', "PYTHONPATH does not reach it"),
        (f'exec {sys.executable} -S "$@"', "PYTHONPATH does not reach it"),
    ],
)
def test_a_python_that_cannot_be_used_is_said(tmp_path, script, said):
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    code, found = doctor(tmp_path, PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert code == 0
    assert (found["training environment"]["state"], said in found["training environment"]["found"]) == ("limited", True)


@pytest.mark.parametrize(
    ("state", "needed", "said"),
    [
        ("ok", True, "Everything works here."),
        ("limited", True, "with limits"),
        ("missing", True, "cannot work"),
        ("missing", False, "works"),
    ],
)
def test_the_last_line_says_whether_it_works(state, needed, said):
    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO())
    console.print(shown(Health((Check("git", state, "found", "install it", needed),))))
    assert said in console.export_text().splitlines()[-1]
